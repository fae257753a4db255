package filestore

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

// openFlags is empty: the check of the open file notices a link, and there are no pipes
// in directories.
const openFlags = 0

// tryLock takes the lock of f with LockFileEx, if nobody has it.
func tryLock(f *os.File) (bool, error) {
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, new(windows.Overlapped))
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, windows.ERROR_LOCK_VIOLATION), errors.Is(err, windows.ERROR_IO_PENDING):
		return false, nil
	default:
		return false, &fs.PathError{Op: "LockFileEx", Path: f.Name(), Err: err}
	}
}

func unlock(f *os.File) error {
	return windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, new(windows.Overlapped))
}

// Access lists are for the administrator of the directory.

func checkDir(string, fs.FileInfo) error { return nil }

func checkOwner(string, fs.FileInfo, fs.FileInfo) error { return nil }

func settle(*os.File, fs.FileInfo) error { return nil }

func settleDir(string, string) error { return nil }

func (d *directory) makeGuard(name string) error {
	f, err := d.root.OpenFile(name, os.O_RDONLY|os.O_CREATE, privateFile)
	if err != nil {
		return err
	}
	return f.Close()
}

// syncDir does nothing: directories can't be synchronized here, and a renaming goes
// through the journal of the file system.
func syncDir(*os.Root) error { return nil }
