package layered

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/lockfx/lockfx/layered/internal/owner"
)

// place is where a lock file is.
type place struct {
	path string
	dir  string // made if it is missing; empty if that is not up to us
	own  bool   // dir is this user's own, where everybody may write
}

// place chooses where the lock file is. It notes a fault where that would depend on how
// the process was started.
func (s *settings) place() place {
	if s.file != "" {
		return place{path: s.file}
	}
	p := place{dir: s.dir}
	for _, name := range []string{"LOCKFX_LOCK_DIR", "LOQKIT_LOCK_DIR"} {
		if p.dir == "" {
			p.dir = os.Getenv(name)
			if p.dir != "" && !filepath.IsAbs(p.dir) {
				s.fault(fmt.Sprintf("%s=%q", name, p.dir), "must be an absolute path, since processes differ in their working directories")
			}
		}
	}
	if p.dir == "" {
		p.dir, p.own = userDir(), true
	}
	p.path = filepath.Join(p.dir, fileName(s.namespace, s.key))
	return p
}

// prepare makes the directory if it is missing.
func (p place) prepare() error {
	if !p.own {
		return p.makeDir()
	}
	err := checkTemp()
	if err == nil {
		err = p.makeDir()
	}
	if err == nil {
		err = p.checkOwn()
	}
	if err != nil {
		return fmt.Errorf("%w; layered.WithDir and LOCKFX_LOCK_DIR name another directory", err)
	}
	return nil
}

func (p place) makeDir() error {
	if p.dir == "" {
		return nil
	}
	if _, err := os.Lstat(p.dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return owner.MakeDir(p.dir)
}

// checkOwn makes sure that nobody else has laid the user's own directory there.
func (p place) checkOwn() error {
	there, err := os.Lstat(p.dir)
	if err != nil {
		return err
	}
	if !there.IsDir() {
		return fmt.Errorf("lock directory %s: must be a directory, and no symbolic link: %w", p.dir, fs.ErrInvalid)
	}
	return checkOwner(p.dir, there)
}

// LockFile returns the path that a WithLock with these options locks. The options need
// [WithKey] or [WithFile]. A program that locks the path as well needs WithFile: a file
// that was named after its key may be removed while no WithLock holds it.
func LockFile(opts ...Option) (string, error) {
	s := newSettings(opts)
	if !s.keyed && s.file == "" {
		s.fault("layered.WithKey", "is required")
	}
	p := s.place()
	if err := errors.Join(s.faults...); err != nil {
		return "", err
	}
	return p.path, nil
}
