//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package flock

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/lockfx/lockfx/layered/internal/owner"
)

// lockCall is the system call in errors of taking a lock.
const lockCall = "flock"

// unixFile is a bare descriptor: an os.File would add a finalizer and the poller to
// something that is never read.
type unixFile struct {
	fd   int
	stat unix.Stat_t
}

// A shared file system may emulate flock(2) by locks of records, and these need a file
// that is open for writing.
const openFlags = unix.O_RDWR | unix.O_CLOEXEC | unix.O_NOFOLLOW | unix.O_NONBLOCK

// Open opens or creates the lock file at path. It refuses what is no regular file, a
// symbolic link too, and a file of somebody who does not share it; see package owner.
func Open(path string) (File, error) {
	for {
		f, err := open(path)
		if errors.Is(err, unix.ENOENT) {
			f, err = create(path)
		}
		switch {
		case errors.Is(err, unix.EEXIST): // another made it meanwhile
			continue
		case errors.Is(err, unix.ELOOP), errors.Is(err, unix.EMLINK):
			err = fmt.Errorf("a symbolic link is refused: %w", err)
		case err == nil:
			return f, nil
		}
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
}

// open opens a file that is there.
func open(path string) (*unixFile, error) {
	fd, err := openFD(path, 0, 0)
	if err != nil {
		return nil, err
	}
	f := &unixFile{fd: fd}
	if err := f.inspect(path); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// create makes a file that is not there. It has its name once all who share it can open
// it.
func create(path string) (*unixFile, error) {
	terms, err := owner.ForNew(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	name := path
	if !terms.Settled() {
		name = fmt.Sprintf("%s.new-%x", path, rand.Uint64())
		defer os.Remove(name) //nolint:errcheck // it has another name, or nobody wants it
	}
	fd, err := openFD(name, unix.O_CREAT|unix.O_EXCL, terms.Mode)
	if err != nil {
		return nil, err
	}
	f := &unixFile{fd: fd}
	if !terms.Settled() {
		err = errors.Join(unix.Fchown(fd, terms.UID, terms.GID), unix.Fchmod(fd, terms.Mode))
		if err == nil {
			err = os.Link(name, path)
		}
		if errors.Is(err, unix.ENOENT) { // somebody has tidied up
			err = unix.EEXIST
		}
	}
	if err == nil {
		err = f.inspect(path)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

func openFD(path string, flags int, mode uint32) (fd int, err error) {
	err = retry(func() (err error) {
		fd, err = unix.Open(path, openFlags|flags, mode)
		return err
	})
	return fd, owner.Explain(path, err)
}

// inspect notes which file f is, and refuses one that should not be locked.
func (f *unixFile) inspect(path string) error {
	if err := retry(func() error { return unix.Fstat(f.fd, &f.stat) }); err != nil {
		return err
	}
	if f.stat.Mode&unix.S_IFMT != unix.S_IFREG {
		return fmt.Errorf("not a regular file: %w", unix.EINVAL)
	}
	if int(f.stat.Uid) == os.Geteuid() {
		return nil
	}
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	return owner.Check(path, info)
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
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return false, nil
	}
	if err != nil {
		return false, &fs.PathError{Op: "lstat", Path: path, Err: err}
	}
	return there.Dev == f.stat.Dev && there.Ino == f.stat.Ino, nil
}

func (f *unixFile) flock(how int) error {
	return os.NewSyscallError(lockCall, retry(func() error { return unix.Flock(f.fd, how) }))
}

// retry repeats a system call that a signal interrupted.
func retry(call func() error) error {
	for {
		if err := call(); err != unix.EINTR { //nolint:errorlint // a bare errno, on the fast lane
			return err
		}
	}
}
