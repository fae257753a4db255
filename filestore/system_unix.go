//go:build unix

package filestore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// openFlags keep an open from following a symbolic link, and from waiting for the
// other end of a pipe.
const openFlags = unix.O_NOFOLLOW | unix.O_NONBLOCK

// tryLock takes the lock of f with flock(2), if nobody has it.
func tryLock(f *os.File) (bool, error) {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EWOULDBLOCK):
			return false, nil
		default:
			return false, &fs.PathError{Op: "flock", Path: f.Name(), Err: err}
		}
	}
}

// unlock gives the lock of f back. Closing would do so too, but not while a process
// that is just being started still shares the descriptor.
func unlock(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_UN) }

// checkOwner refuses a file of another user, who could change it at any time.
func checkOwner(path string, info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if uid := os.Geteuid(); ok && int(stat.Uid) != uid {
		return fmt.Errorf("%w: %s belongs to user %d; this is user %d", ErrUnsafe, path, stat.Uid, uid)
	}
	return nil
}

// checkDir refuses a directory in which other users can do as they like.
func checkDir(path string, info fs.FileInfo) error {
	if info.Mode().Perm()&0o002 != 0 {
		return fmt.Errorf("%w: everybody may write to directory %s (mode %v); give the store one of its own", ErrUnsafe, path, info.Mode())
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if uid := os.Geteuid(); ok && uid != 0 && stat.Uid != 0 && int(stat.Uid) != uid {
		return fmt.Errorf("%w: directory %s belongs to user %d; this is user %d", ErrUnsafe, path, stat.Uid, uid)
	}
	return nil
}

// syncDir makes renamings in the directory survive a loss of power.
func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
