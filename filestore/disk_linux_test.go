package filestore_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/filestore"
)

// inOwnMounts plays a part in a process that may mount what it likes and that nobody else
// sees. Without the rights to do so the test fails: it is never left out.
func inOwnMounts(t *testing.T, part, dir string) {
	t.Helper()
	cmd := process(t, part, dir, "")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// mountTmpfs mounts a small file system on dir, for this process alone.
func mountTmpfs(dir, options string) error {
	if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=700,"+options); err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	return nil
}

// disturbed makes every call on a store that got into trouble, and returns an error unless
// each failed with want, named the file, and granted nothing.
func disturbed(s *filestore.Store, token lockfx.Token, want error) error {
	var faults []error
	note := func(op string, yes bool, err error) {
		if yes || !errors.Is(err, want) || !strings.HasPrefix(err.Error(), strings.Fields(op)[0]+` "`) {
			faults = append(faults, fmt.Errorf("%s: %v, %w; want an error with %w", op, yes, err, want))
		}
	}
	g, err := s.Acquire(ctx, "free", time.Hour)
	note("acquire a free key", g != (lockfx.Grant{}), err)
	ok, err := s.Renew(ctx, "held", token, 2*time.Hour)
	note("renew", ok, err)
	ok, err = s.Release(ctx, "held", token)
	note("release", ok, err)
	ok, err = s.Break(ctx, "held")
	note("break", ok, err)
	return errors.Join(faults...)
}

// acquired returns the token of a new lease.
func acquired(s *filestore.Store, key string) (lockfx.Token, error) {
	g, err := s.Acquire(ctx, key, time.Hour)
	return g.Token, mustBeTrue(g.OK, err)
}

// untouched returns an error unless the lease on "held" is as it was, and the store works
// again.
func untouched(s *filestore.Store, token lockfx.Token) error {
	l, err := s.Inspect(ctx, "held")
	if err != nil || l.Token != token || l.TimeLeft > time.Hour {
		return fmt.Errorf("inspect: %+v, %w; want token %v as it was", l, err, token)
	}
	next, err := acquired(s, "free")
	if err != nil || next <= token {
		return fmt.Errorf("token %v after %v: %w", next, token, err)
	}
	return mustBeTrue(s.Release(ctx, "held", token))
}

func TestFullDisk(t *testing.T) { inOwnMounts(t, "full disk", newDir(t)) }

func init() {
	parts["full disk"] = func(dir, _ string) error {
		if err := mountTmpfs(dir, "size=64k"); err != nil {
			return err
		}
		s, err := filestore.New(dir)
		if err != nil {
			return err
		}
		token, err := acquired(s, "held")
		if err != nil {
			return err
		}
		filler := filepath.Join(dir, "filler")
		if err := os.WriteFile(filler, make([]byte, 1<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
			return fmt.Errorf("the disk is not full: %w", err)
		}
		if err := disturbed(s, token, syscall.ENOSPC); err != nil {
			return err
		}
		// What needs no space still works: contention is no error.
		if g, err := s.Acquire(ctx, "held", time.Hour); err != nil || g.OK || g.RetryAfter <= 0 {
			return fmt.Errorf("acquire a held key: %+v, %w", g, err)
		}
		if left, err := filepath.Glob(filepath.Join(dir, "*.tmp")); err != nil || len(left) > 0 {
			return fmt.Errorf("left behind: %v, %w", left, err)
		}
		if err := os.Remove(filler); err != nil {
			return err
		}
		return untouched(s, token)
	}
}

func TestNoFileLeft(t *testing.T) { inOwnMounts(t, "no inode left", newDir(t)) }

func init() {
	parts["no inode left"] = func(dir, _ string) error {
		if err := mountTmpfs(dir, "nr_inodes=8"); err != nil {
			return err
		}
		s, err := filestore.New(dir)
		if err != nil {
			return err
		}
		token, err := acquired(s, "held")
		if err != nil {
			return err
		}
		var fillers []string
		for err == nil {
			filler := filepath.Join(dir, fmt.Sprint("filler-", len(fillers)))
			if err = os.WriteFile(filler, nil, 0o600); err == nil {
				fillers = append(fillers, filler)
			}
		}
		if err := disturbed(s, token, syscall.ENOSPC); err != nil {
			return err
		}
		for _, filler := range fillers {
			if err := os.Remove(filler); err != nil {
				return err
			}
		}
		return untouched(s, token)
	}
}

func TestReadOnlyDisk(t *testing.T) { inOwnMounts(t, "read-only disk", newDir(t)) }

func init() {
	parts["read-only disk"] = func(dir, _ string) error {
		if err := mountTmpfs(dir, "size=1m"); err != nil {
			return err
		}
		s, err := filestore.New(dir)
		if err != nil {
			return err
		}
		token, err := acquired(s, "held")
		if err != nil {
			return err
		}
		if err := unix.Mount("none", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, "size=1m"); err != nil {
			return fmt.Errorf("remount: %w", err)
		}
		if err := disturbed(s, token, syscall.EROFS); err != nil {
			return err
		}
		if l, err := s.Inspect(ctx, "held"); err != nil || l.Token != token {
			return fmt.Errorf("inspect needs no writing: %+v, %w", l, err)
		}
		if err := unix.Mount("none", dir, "", unix.MS_REMOUNT, "size=1m"); err != nil {
			return fmt.Errorf("remount: %w", err)
		}
		return untouched(s, token)
	}
}

func TestFilesOfAnotherUserAreRefused(t *testing.T) {
	inOwnMounts(t, "files of another user", newDir(t))
}

func init() {
	parts["files of another user"] = func(dir, _ string) error {
		for _, name := range []string{filestore.LeaseName("held"), filestore.GuardNameOf("held"), filestore.MarkName, "guard-mark"} {
			s, err := filestore.New(filepath.Join(dir, "below "+name))
			if err != nil {
				return err
			}
			token, err := acquired(s, "held")
			if err != nil {
				return err
			}
			path := filepath.Join(s.Dir(), name)
			// Root gives the file away. Anybody else, who is root of nothing but this
			// process, can only show a file of the real root in its place.
			if err := os.Chown(path, 65534, 65534); err != nil {
				if err := unix.Mount("/etc/passwd", path, "", unix.MS_BIND, ""); err != nil {
					return err
				}
			}
			key := "held"
			if strings.Contains(name, "mark") {
				key = "free" // a token has to be issued for it
			}
			refused := func(err error) bool {
				// A guard is opened for writing, which the system may refuse before us.
				return errors.Is(err, filestore.ErrUnsafe) && strings.Contains(err.Error(), "belongs to user 65534") || errors.Is(err, syscall.EACCES)
			}
			if g, err := s.Acquire(ctx, key, time.Hour); g != (lockfx.Grant{}) || !refused(err) {
				return fmt.Errorf("%s: acquire: %+v, %w", name, g, err)
			}
			if ok, err := s.Release(ctx, "held", token); key == "held" && (ok || !refused(err)) {
				return fmt.Errorf("%s: release: %v, %w", name, ok, err)
			}
		}
		return nil
	}
}
