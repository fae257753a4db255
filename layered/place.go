package layered

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// place is where a lock file is.
type place struct {
	path string
	dir  string // made if it is missing; empty if that is not up to us
	own  bool   // dir is this user's own, where everybody may write
}

func (s *settings) place() place {
	if s.file != "" {
		return place{path: s.file}
	}
	p := place{dir: s.dir}
	for _, name := range []string{"LOCKFX_LOCK_DIR", "LOQKIT_LOCK_DIR"} {
		if p.dir == "" {
			p.dir = os.Getenv(name)
		}
	}
	if p.dir == "" {
		p.dir, p.own = userDir(), true
	}
	if full, err := filepath.Abs(p.dir); err == nil {
		p.dir = full
	}
	p.path = filepath.Join(p.dir, fileName(s.namespace, s.key))
	return p
}

// prepare makes the directory if it is missing. The user's own must not have been
// laid there by somebody else.
func (p place) prepare() error {
	if p.dir == "" {
		return nil
	}
	there, err := os.Lstat(p.dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(p.dir, 0o700); err != nil {
			return err
		}
		there, err = os.Lstat(p.dir)
	}
	if err != nil || !p.own {
		return err
	}
	return checkOwn(p.dir, there)
}

func checkOwn(dir string, there fs.FileInfo) error {
	if !there.IsDir() {
		return fmt.Errorf("lock directory %s: must be a directory, and no symbolic link: %w", dir, fs.ErrInvalid)
	}
	return checkOwner(dir, there)
}

// LockFile returns the path that a WithLock with these options locks, for programs
// that share it; see [WithFile]. The options need [WithKey] or [WithFile].
func LockFile(opts ...Option) (string, error) {
	s := newSettings(opts)
	if !s.keyed && s.file == "" {
		s.fault("layered.WithKey", "is required")
	}
	if err := errors.Join(s.faults...); err != nil {
		return "", err
	}
	return s.place().path, nil
}
