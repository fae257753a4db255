package filestore

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrUnsafe says that a file or directory can't be trusted: it is a symbolic link or
// reached over one, no regular file, belongs to another user, or is open to everybody.
var ErrUnsafe = errors.New("unsafe file")

// maxFile is more than any record takes: a key of 512 bytes and a label of 1,024, each
// byte of which can take six.
const maxFile = 16 << 10

// directory reads and replaces the files of a store. Who may do so when is up to the
// guards.
type directory struct {
	path  string      // absolute
	root  *os.Root    // the directory that was opened there, wherever it is by now
	info  fs.FileInfo // what the system said of it then
	turns [stripes + 1]chan struct{}
	// step, if not nil, is called before each step of locking and replacing a file. It
	// is for tests, which crash there.
	step func(step string, f *os.File, data []byte)
}

func (d *directory) file(name string) string { return filepath.Join(d.path, name) }

// errGone says that there is no directory any more, rather than no file.
var errGone = errors.New("the directory of the store is gone")

// here returns what the system says of the directory, if the path still leads to it. One
// that was moved or replaced excludes nobody who comes by the path.
func (d *directory) here() (fs.FileInfo, error) {
	there, err := os.Stat(d.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: %w", errGone, err)
	case err != nil:
		return nil, err
	}
	if !os.SameFile(d.info, there) {
		return nil, fmt.Errorf("%w: another one is at %s now; leases of the old one are void: open the store again", errGone, d.path)
	}
	return there, nil
}

// open opens a regular file that can be trusted, and nothing else.
func (d *directory) open(name string) (*os.File, error) {
	dir, err := d.here()
	if err != nil {
		return nil, err
	}
	f, err := d.root.OpenFile(name, os.O_RDONLY|openFlags, 0)
	link, linkErr := d.root.Lstat(name)
	if linkErr == nil && link.Mode()&fs.ModeSymlink != 0 {
		if err == nil {
			err = f.Close()
		}
		return nil, errors.Join(fmt.Errorf("%w: %s is a symbolic link", ErrUnsafe, d.file(name)), err)
	}
	if err != nil {
		return nil, err
	}
	if err := checkFile(f, dir); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func checkFile(f *os.File, dir fs.FileInfo) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%w: %s is no regular file (mode %v)", ErrUnsafe, f.Name(), info.Mode())
	}
	return checkOwner(f.Name(), info, dir)
}

// read returns the content of a file, and whether there is one.
func (d *directory) read(name string) (data []byte, found bool, err error) {
	f, err := d.open(name)
	switch {
	case missing(err):
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
	f, err := d.root.Open(".")
	if err != nil {
		return nil, err
	}
	names, err := f.Readdirnames(-1)
	return names, errors.Join(err, f.Close())
}

// replace gives a file another content in one step: whoever reads it, or finds it after
// a crash at any moment, sees the old one or the new one. The new one survives a loss
// of power once sync has been called. On an error the old content is still there.
func (d *directory) replace(name string, data []byte) error {
	f, err := d.temporary(name)
	if err != nil {
		return err
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
		err = d.root.Rename(name+tempSuffix, name)
	}
	if err != nil {
		return errors.Join(err, ignoreMissing(d.root.Remove(name+tempSuffix)))
	}
	d.at("renamed", nil, nil)
	return nil
}

// temporary makes the file that is to take the name. It has its owner and mode by then,
// so that no crash leaves others a file that they can't use.
//
// It has a fixed name, so that crashes leave one behind at most; the caller keeps
// others off it.
func (d *directory) temporary(name string) (*os.File, error) {
	dir, err := d.here()
	if err != nil {
		return nil, err
	}
	d.at("remove", nil, nil)
	if err := ignoreMissing(d.root.Remove(name + tempSuffix)); err != nil {
		return nil, err
	}
	d.at("create", nil, nil)
	f, err := d.root.OpenFile(name+tempSuffix, os.O_WRONLY|os.O_CREATE|os.O_EXCL, privateFile)
	if err != nil {
		return nil, err
	}
	d.at("settle", nil, nil)
	if err := settle(f, dir); err != nil {
		return nil, errors.Join(fmt.Errorf("share %s: %w", f.Name(), err), f.Close(), d.root.Remove(name+tempSuffix))
	}
	return f, nil
}

// sync makes what was replaced survive a loss of power.
func (d *directory) sync() error { return syncDir(d.root) }

func (d *directory) at(step string, f *os.File, data []byte) {
	if d.step != nil {
		d.step(step, f, data)
	}
}

// missing reports whether there is no such file in a directory that is there.
func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errGone) }

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
