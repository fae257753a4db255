package flock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

// lockCall is the system call in errors of taking a lock.
const lockCall = "LockFileEx"

type windowsFile struct{ *os.File }

// Open opens or creates the lock file at path. It refuses what is no regular file.
func Open(path string) (File, error) {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("not a regular file: %w", fs.ErrInvalid)}
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	return &windowsFile{f}, nil
}

func (f *windowsFile) TryLock() (bool, error) {
	err := f.lock(windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return false, nil
	}
	return err == nil, err
}

func (f *windowsFile) Lock() error { return f.lock(windows.LOCKFILE_EXCLUSIVE_LOCK) }

const allBytes = ^uint32(0)

func (f *windowsFile) lock(flags uint32) error {
	return os.NewSyscallError(lockCall,
		windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, allBytes, allBytes, new(windows.Overlapped)))
}

func (f *windowsFile) Unlock() error {
	return os.NewSyscallError("UnlockFileEx",
		windows.UnlockFileEx(windows.Handle(f.Fd()), 0, allBytes, allBytes, new(windows.Overlapped)))
}

func (f *windowsFile) IsAt(path string) (bool, error) {
	there, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	here, err := f.Stat()
	return err == nil && os.SameFile(here, there), err
}
