//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package flock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// unixFile is a bare descriptor: an os.File would add a finalizer and the poller to
// something that is never read.
type unixFile struct {
	fd   int
	stat unix.Stat_t
}

// Open opens or creates (0600) the lock file at path. It refuses what is no regular
// file of this user: a symbolic link would let somebody else choose the file, and a
// file of another user can be taken away under the holder.
func Open(path string) (File, error) {
	// A shared file system may emulate flock(2) by locks of records, and these need
	// a file that is open for writing.
	const flags = unix.O_RDWR | unix.O_CREAT | unix.O_CLOEXEC | unix.O_NOFOLLOW | unix.O_NONBLOCK
	var fd int
	err := retry(func() (err error) {
		fd, err = unix.Open(path, flags, 0o600)
		return err
	})
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EMLINK) {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("a symbolic link is refused: %w", err)}
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	f := &unixFile{fd: fd}
	if err := f.inspect(); err != nil {
		_ = f.Close()
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return f, nil
}

func (f *unixFile) inspect() error {
	if err := retry(func() error { return unix.Fstat(f.fd, &f.stat) }); err != nil {
		return err
	}
	if f.stat.Mode&unix.S_IFMT != unix.S_IFREG {
		return fmt.Errorf("not a regular file: %w", unix.EINVAL)
	}
	if uid := os.Geteuid(); int(f.stat.Uid) != uid {
		return fmt.Errorf("owned by user %d, this process is user %d: %w", f.stat.Uid, uid, unix.EPERM)
	}
	return nil
}

func (f *unixFile) TryLock() (bool, error) {
	err := f.flock(unix.LOCK_EX | unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

func (f *unixFile) Lock() error   { return f.flock(unix.LOCK_EX) }
func (f *unixFile) Unlock() error { return f.flock(unix.LOCK_UN) }

// Close is not tried again after EINTR: on Linux the descriptor is gone by then, and
// may already be somebody else's.
func (f *unixFile) Close() error {
	return os.NewSyscallError("close", unix.Close(f.fd))
}

func (f *unixFile) IsAt(path string) (bool, error) {
	var there unix.Stat_t
	err := retry(func() error { return unix.Lstat(path, &there) })
	if errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	if err != nil {
		return false, &fs.PathError{Op: "lstat", Path: path, Err: err}
	}
	return there.Dev == f.stat.Dev && there.Ino == f.stat.Ino, nil
}

func (f *unixFile) flock(how int) error {
	return os.NewSyscallError("flock", retry(func() error { return unix.Flock(f.fd, how) }))
}

// retry repeats a system call that a signal interrupted.
func retry(call func() error) error {
	for {
		if err := call(); err != unix.EINTR { //nolint:errorlint // a bare errno, on the fast lane
			return err
		}
	}
}
