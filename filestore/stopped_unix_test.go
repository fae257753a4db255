//go:build unix

package filestore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/filestore"
)

// A process that is stopped at its worst, with the guard of the mark, blocks the keys that
// share its other guard. Who comes for those leaves when its context ends, told what it
// waited for; all other keys can be used.
func TestStoppedProcessInTheMiddleOfASection(t *testing.T) {
	dir := newDir(t)
	s := open(t, dir)
	before := map[string]lockfx.Token{}
	for i := range 8 {
		if key := fmt.Sprint("job ", i); filestore.GuardNameOf(key) != filestore.GuardNameOf("nightly") {
			before[key] = grant(t, s, key, time.Hour)
			release(t, s, key, before[key], true)
		}
	}
	stopped := process(t, "stop inside", dir, "")
	if err := stopped.Start(); err != nil {
		t.Fatal(err)
	}
	var status unix.WaitStatus
	for {
		_, err := unix.Wait4(stopped.Process.Pid, &status, unix.WUNTRACED, nil)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EINTR) {
			t.Fatal(err)
		}
	}
	if !status.Stopped() {
		t.Fatalf("the process is not stopped: %v", status)
	}
	for op, call := range calls(s, 1) {
		if op == "watch" || op == "inspect" {
			continue
		}
		hurried, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		if err := call(hurried, "nightly"); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "wait for "+filestore.GuardNameOf("nightly")) {
			t.Errorf("%s: %v", op, err)
		}
		cancel()
	}
	for key := range before {
		if err := useKey(open(t, dir), key); err != nil { // as another process would, which remembers nothing
			t.Error(err)
		}
		before[key] = grant(t, open(t, dir), key, time.Hour)
	}

	if err := stopped.Process.Signal(unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := stopped.Wait(); err != nil {
		t.Fatal(err)
	}
	if g, err := s.Acquire(ctx, "nightly", time.Hour); err != nil || g.OK {
		t.Errorf("the lease of the process that went on: %+v, %v", g, err)
	}
	for key, token := range before {
		forceFree(t, s, key, true)
		rising(t, token, grant(t, s, key, time.Hour))
	}
}

func init() {
	parts["stop inside"] = func(dir, _ string) error {
		s, err := filestore.New(dir)
		if err != nil {
			return err
		}
		stops := 0
		s.OnStep(func(step string, _ *os.File, _ []byte) {
			if step == "rename" && stops == 0 {
				stops++
				_ = unix.Kill(os.Getpid(), unix.SIGSTOP)
			}
		})
		_, err = acquired(s, "nightly")
		return err
	}
}
