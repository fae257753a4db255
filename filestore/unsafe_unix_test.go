//go:build unix

package filestore_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/filestore"
)

// unsafeFiles are things that may lie where a file of the store belongs.
var unsafeFiles = map[string]func(path string) error{
	"link to a file": func(path string) error {
		target := path + ".target"
		return errors.Join(os.WriteFile(target, nil, 0o600), os.Symlink(target, path))
	},
	"link to nothing": func(path string) error { return os.Symlink(path+".nothing", path) },
	"pipe":            func(path string) error { return unix.Mkfifo(path, 0o600) },
	"directory":       func(path string) error { return os.Mkdir(path, 0o700) },
}

func TestUnsafeFilesAreRefused(t *testing.T) {
	for what, place := range unsafeFiles {
		for _, name := range []string{filestore.LeaseName("nightly"), filestore.GuardNameOf("nightly"), filestore.MarkName, "guard-mark"} {
			s, _, dir := newStore(t)
			path := filepath.Join(dir, name)
			if err := place(path); err != nil {
				t.Fatal(err)
			}
			g, err := s.Acquire(ctx, "nightly", time.Hour)
			isDir := what == "directory" && strings.HasPrefix(name, "guard") && errors.Is(err, syscall.EISDIR)
			if g != (lockfx.Grant{}) || !errors.Is(err, filestore.ErrUnsafe) && !isDir || !strings.Contains(err.Error(), path) {
				t.Errorf("%s as %s: %+v, %v", what, name, g, err)
			}
			if _, err := os.Lstat(path + ".nothing"); err == nil {
				t.Errorf("%s as %s: a file was made where the link points", what, name)
			}
		}
	}
}

// A temporary file that is a link is replaced, never followed.
func TestLinkAsTemporaryFile(t *testing.T) {
	s, _, dir := newStore(t)
	precious := filepath.Join(newDir(t), "precious")
	if err := os.WriteFile(precious, []byte("data"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{filestore.LeaseName("nightly"), filestore.MarkName} {
		if err := os.Symlink(precious, filepath.Join(dir, name+".tmp")); err != nil {
			t.Fatal(err)
		}
	}
	grant(t, s, "nightly", time.Hour)
	if data, err := os.ReadFile(precious); err != nil || string(data) != "data" {
		t.Errorf("%q, %v", data, err)
	}
}

func TestDirectoryOpenToEverybodyIsRefused(t *testing.T) {
	dir := newDir(t)
	for mode, refused := range map[os.FileMode]bool{0o700: false, 0o755: false, 0o770: false, 0o770 | os.ModeSetgid: false, 0o777: true, 0o777 | os.ModeSticky: true, 0o770 | os.ModeSticky: true} {
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		_, err := filestore.New(dir)
		if refused != errors.Is(err, filestore.ErrUnsafe) || !refused && err != nil {
			t.Errorf("mode %v: %v", mode, err)
		}
	}
}

// nobody is a user without rights.
const nobody = 65534

// asNobody plays a part as another user than the one who owns the files. To become
// another user takes root; anybody else is that user already.
func asNobody(t *testing.T, part, dir string) {
	t.Helper()
	if out, err := process(t, part, dir, "").CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", part, err, out)
	}
}

// become ends the rights of root, if this process has them.
func become(uid int) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return errors.Join(syscall.Setgroups(nil), syscall.Setgid(uid), syscall.Setuid(uid))
}

func TestCase_H06_NoPermissionIsAnErrorNeverHeld(t *testing.T) {
	dir := newDir(t)
	if os.Geteuid() == 0 {
		if err := os.Chown(dir, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	asNobody(t, "no permission", dir)
}

func init() {
	parts["no permission"] = func(dir, _ string) error {
		if err := become(nobody); err != nil {
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
		if err := os.Chmod(dir, 0o500); err != nil {
			return err
		}
		if err := disturbed(s, token, syscall.EACCES); err != nil {
			return err
		}
		if err := os.Chmod(dir, 0); err != nil {
			return err
		}
		if err := disturbed(s, token, syscall.EACCES); err != nil {
			return err
		}
		if l, err := s.Inspect(ctx, "held"); !errors.Is(err, syscall.EACCES) {
			return fmt.Errorf("inspect: %+v, %w", l, err)
		}
		if err := os.Chmod(dir, 0o700); err != nil {
			return err
		}
		return untouched(s, token)
	}
}

// A directory of another user is refused, unless that is root, or this is.
func TestDirectoryOfAnotherUserIsRefused(t *testing.T) {
	dir := newDir(t)
	asNobody(t, "directory of another user", dir)
}

func init() {
	parts["directory of another user"] = func(string, string) error {
		if err := become(nobody); err != nil {
			return err
		}
		var faults []error
		for uid, refused := range map[int]bool{os.Geteuid(): false, 0: false, os.Geteuid() + 1: true} {
			for mode, refused := range map[os.FileMode]bool{0o755: refused, 0o770: false} { // to a group one gives a directory knowingly
				info := ownedBy{uid: uint32(uid), mode: mode}
				if err := filestore.CheckDir("/locks", info); refused != errors.Is(err, filestore.ErrUnsafe) {
					faults = append(faults, fmt.Errorf("directory of user %d with mode %v, seen by %d: %w", uid, mode, os.Geteuid(), err))
				}
			}
		}
		return errors.Join(faults...)
	}
}

// ownedBy is what the system would say about a directory of a user.
type ownedBy struct {
	os.FileInfo
	uid  uint32
	mode os.FileMode
}

func (o ownedBy) Mode() os.FileMode { return os.ModeDir | o.mode }
func (o ownedBy) Sys() any          { return &syscall.Stat_t{Uid: o.uid} }

// A process that is started while the guard is held must not keep it.
func TestCase_H12_ChildDoesNotInheritTheGuard(t *testing.T) {
	s, _, dir := newStore(t)
	var children []*exec.Cmd
	s.OnStep(func(step string, _ *os.File, _ []byte) {
		if step == "rename" {
			child := exec.Command("sleep", "600")
			if err := child.Start(); err != nil {
				t.Error(err)
			}
			children = append(children, child)
		}
	})
	grant(t, s, "nightly", time.Hour)
	unlock, ok := open(t, dir).TryGuard("nightly")
	if !ok || len(children) != 2 {
		t.Errorf("the guard is free: %v, with %d children", ok, len(children))
	} else {
		unlock()
	}
	for _, child := range children {
		if err := child.Process.Kill(); err != nil {
			t.Error(err)
		}
		if err := child.Wait(); !killed(err) {
			t.Error(err)
		}
	}
}
