package filestore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/lockfx/lockfx"
)

// Directories and files are for one user, unless the directory says otherwise.
const (
	privateDir  fs.FileMode = 0o700
	privateFile fs.FileMode = 0o600
)

// openDirectory returns the directory at path, and makes it if it does not exist.
func openDirectory(path string) (*directory, error) {
	if path == "" {
		return nil, fmt.Errorf("%w: the path of the directory must not be empty", lockfx.ErrConfig)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := refuseLinks(path); err != nil {
		return nil, err
	}
	if err := makeDir(path); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	info, err := root.Stat(".")
	if err == nil {
		err = checkDir(path, info)
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	d := &directory{path: path, root: root, info: info}
	for i := range d.turns {
		d.turns[i] = make(chan struct{}, 1)
	}
	return d, nil
}

// refuseLinks refuses a path that leads over a symbolic link: when the link is switched,
// as a deployment switches "current", processes of before and after would not exclude
// each other. Links in the root directory are those of the system, such as /var on macOS.
func refuseLinks(path string) error {
	for p := path; ; p = filepath.Dir(p) {
		parent := filepath.Dir(p)
		if parent == filepath.Dir(parent) {
			return nil
		}
		info, err := os.Lstat(p)
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			continue // what is not there is yet to be made
		}
		hint := "name the real path"
		if target, err := filepath.EvalSymlinks(path); err == nil {
			hint = fmt.Sprintf("name the real path, such as %s", target)
		}
		return fmt.Errorf("%w: %s is a symbolic link, and when it is switched, processes no longer exclude each other: %s", ErrUnsafe, p, hint)
	}
}

// makeDir makes a directory and its parents where they are missing.
func makeDir(path string) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(path)
	if err := makeDir(parent); err != nil {
		return err
	}
	err := os.Mkdir(path, privateDir)
	if errors.Is(err, fs.ErrExist) {
		return nil // somebody else did at the same time
	}
	if err != nil {
		return err
	}
	return settleDir(path, parent)
}
