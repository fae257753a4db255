package report

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// replaceFile makes content the file at path, in one step and for good: it is
// written and synced under another name, and renamed. Nothing is renamed once ctx
// has ended.
func replaceFile(ctx context.Context, path string, content []byte) error {
	temp, err := writeTemp(path, content)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("stopped: %w", context.Cause(ctx))
	} else {
		err = os.Rename(temp, path)
	}
	if err != nil {
		_ = os.Remove(temp) // what went wrong before says more
		return err
	}
	return syncDirectory(filepath.Dir(path))
}

// writeTemp writes and syncs a new file beside path, and returns its name.
func writeTemp(path string, content []byte) (name string, err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return "", err
	}
	defer func() {
		if closed := f.Close(); err == nil {
			err = closed
		}
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	if _, err := f.Write(content); err != nil {
		return "", err
	}
	if err := f.Chmod(0o644); err != nil { // a temporary file is its owner's alone
		return "", err
	}
	return f.Name(), f.Sync()
}

// syncDirectory makes a rename in dir survive a crash of the machine.
func syncDirectory(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // directories can't be synced there
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	if err := d.Sync(); err != nil {
		_ = d.Close()
		return fmt.Errorf("sync directory: %w", err)
	}
	return d.Close()
}
