//go:build torture

package layered

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
)

// It runs where /tmp is another one than the first process has, as a service may.
func TestGateLayeredOwnTemp(t *testing.T) {
	r := role{Do: "try in a /tmp of its own"}
	a := startIn(t, r, &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	})
	line := a.expect("predicate-before ")
	for _, part := range []string{"/tmp of this process is not that of the system", "layered.WithDir and LOCKFX_LOCK_DIR name another directory"} {
		if !strings.Contains(line, part) {
			t.Errorf("it says %q, want %q", line, part)
		}
	}
	a.expect("executed <nil>") // in a directory that was named
	a.wait()
	t.Log("GATE layered-own-temp: a process with a /tmp of its own is refused, and served in a directory that was named")
}

func init() {
	roles["try in a /tmp of its own"] = func(role) error {
		err := errors.Join(
			syscall.Mount("", "/", "", syscall.MS_PRIVATE|syscall.MS_REC, ""),
			syscall.Mount("tmpfs", "/tmp", "tmpfs", 0, ""),
			os.Unsetenv("LOCKFX_LOCK_DIR"), os.Unsetenv("LOQKIT_LOCK_DIR"))
		if err == nil {
			err = errors.Join(try(role{}), try(role{Dir: "/tmp/locks"}))
		}
		return err
	}
}
