package filestore

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/lockfx/lockfx"
)

// ErrUnsafe says that a file or directory can't be trusted: it is a symbolic link, no
// regular file, belongs to another user, or is open to everybody.
var ErrUnsafe = errors.New("unsafe file")

// maxFile is more than any record takes: a key of 512 bytes and a label of 1,024, each
// byte of which can take six.
const maxFile = 16 << 10

// directory reads and replaces the files of a store. Who may do so when is up to the
// guards.
type directory struct {
	path  string // absolute, without symbolic links
	turns [stripes + 1]chan struct{}
	// step, if not nil, is called before each step of locking and replacing a file. It
	// is for tests, which crash there.
	step func(step string, f *os.File, data []byte)
}

// openDirectory returns the directory at path, and makes it, for this user alone, if
// it does not exist.
func openDirectory(path string) (*directory, error) {
	if path == "" {
		return nil, fmt.Errorf("%w: the path of the directory must not be empty", lockfx.ErrConfig)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if err := checkDir(path, info); err != nil {
		return nil, err
	}
	d := &directory{path: path}
	for i := range d.turns {
		d.turns[i] = make(chan struct{}, 1)
	}
	return d, nil
}

func (d *directory) file(name string) string { return filepath.Join(d.path, name) }

// open opens a regular file of this user, and nothing else.
func (d *directory) open(name string, flags int) (*os.File, error) {
	path := d.file(name)
	f, err := os.OpenFile(path, flags|openFlags, 0o600)
	link, linkErr := os.Lstat(path)
	if linkErr == nil && link.Mode()&fs.ModeSymlink != 0 {
		if err == nil {
			err = f.Close()
		}
		return nil, errors.Join(fmt.Errorf("%w: %s is a symbolic link", ErrUnsafe, path), err)
	}
	if err != nil {
		return nil, d.explain(err)
	}
	if err := checkFile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func checkFile(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%w: %s is no regular file (mode %v)", ErrUnsafe, f.Name(), info.Mode())
	}
	return checkOwner(f.Name(), info)
}

// errGone says that there is no directory any more, rather than no file.
var errGone = errors.New("the directory of the store is gone")

// explain tells a missing directory from a missing file.
func (d *directory) explain(err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, statErr := os.Stat(d.path); statErr != nil {
		return fmt.Errorf("%w: %w", errGone, statErr)
	}
	return err
}

// read returns the content of a file, and whether there is one.
func (d *directory) read(name string) (data []byte, found bool, err error) {
	f, err := d.open(name, os.O_RDONLY)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errGone):
		return nil, false, nil
	case err != nil:
		return nil, false, err
	}
	data, err = io.ReadAll(io.LimitReader(f, maxFile+1))
	if len(data) > maxFile {
		err = fmt.Errorf("%w: it is longer than %d bytes", ErrCorrupt, maxFile)
	}
	return data, true, errors.Join(err, f.Close())
}

// names returns the names of all files, in no order.
func (d *directory) names() ([]string, error) {
	f, err := os.Open(d.path)
	if err != nil {
		return nil, d.explain(err)
	}
	names, err := f.Readdirnames(-1)
	return names, errors.Join(err, f.Close())
}

// replace gives a file another content in one step: whoever reads it, or finds it after
// a crash at any moment, sees the old one or the new one. The new one survives a loss
// of power once sync has been called. On an error the old content is still there.
//
// The temporary file has a fixed name, so that crashes leave one behind at most; the
// guard of the record keeps others off it.
func (d *directory) replace(name string, data []byte) error {
	path := d.file(name)
	temp := path + tempSuffix
	d.at("remove", nil, nil)
	if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	d.at("create", nil, nil)
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return d.explain(err)
	}
	d.at("write", f, data)
	_, err = f.Write(data)
	if err == nil {
		d.at("sync", f, nil)
		err = f.Sync()
	}
	d.at("close", f, nil)
	err = errors.Join(err, f.Close())
	if err == nil {
		d.at("rename", nil, nil)
		err = os.Rename(temp, path)
	}
	if err != nil {
		return errors.Join(err, ignoreMissing(os.Remove(temp)))
	}
	d.at("renamed", nil, nil)
	return nil
}

// sync makes what was replaced survive a loss of power.
func (d *directory) sync() error { return syncDir(d.path) }

func (d *directory) at(step string, f *os.File, data []byte) {
	if d.step != nil {
		d.step(step, f, data)
	}
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
