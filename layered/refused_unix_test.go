//go:build unix

package layered

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/lockfx/lockfx/layered/internal/flock"
)

// What the system refuses to this process, others may have.
func TestAuto_RefusalsOfThisProcessAreErrors(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EACCES, syscall.EPERM, syscall.EROFS, syscall.EIO, syscall.ENOMEM, syscall.EBADF} {
		useFiles(t, (&oddFile{errno: errno}).open)
		opts, _ := everything(t)
		refusedByFlock(t, errno, append(opts, auto)...)
		useFiles(t, func(path string) (flock.File, error) { return nil, &os.PathError{Op: "open", Path: path, Err: errno} })
		refusedByFlock(t, errno, append(opts, auto)...)
	}
	for errno, lay := range map[error]func(path string) error{
		syscall.ELOOP:  func(path string) error { return os.Symlink("elsewhere", path) },
		syscall.EISDIR: func(path string) error { return os.Mkdir(path, 0o700) },
		syscall.EINVAL: func(path string) error { return syscall.Mkfifo(path, 0o600) },
	} {
		useFiles(t, nil)
		opts, p := everything(t)
		must(t, os.MkdirAll(filepath.Dir(p.path), 0o700))
		must(t, lay(p.path))
		refusedByFlock(t, errno, append(opts, auto)...)
	}
}

func TestCase_H06_LockFileOfAnotherUser(t *testing.T) {
	opts, p := everything(t)
	must(t, os.MkdirAll(filepath.Dir(p.path), 0o700))
	must(t, os.WriteFile(p.path, nil, 0o600))
	want := syscall.EACCES
	if os.Geteuid() == 0 { // whom access rights do not stop
		must(t, os.Chown(p.path, 65534, -1))
		want = syscall.EPERM
	} else {
		must(t, os.Chmod(p.path, 0))
	}
	said := refusedByFlock(t, want, append(opts, auto)...)
	if os.Geteuid() == 0 && !strings.Contains(said, "owned by user 65534, this process is user 0; to share it, chgrp it") {
		t.Error(said)
	}
	refusedByFlock(t, want, opts...)
}
