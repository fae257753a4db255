package filestore_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lockfx/lockfx/filestore"
)

// Each way in which a path comes to lead to another directory than the one that a running
// process has opened.
var replacements = map[string]func(release, locks string) error{
	"removed":           func(_, locks string) error { return os.RemoveAll(locks) },
	"removed, and made": func(_, locks string) error { return errors.Join(os.RemoveAll(locks), os.Mkdir(locks, 0o700)) },
	"moved":             func(_, locks string) error { return os.Rename(locks, locks+".old") },
	"moved, and made": func(_, locks string) error {
		return errors.Join(os.Rename(locks, locks+".old"), os.Mkdir(locks, 0o700))
	},
	"under another one": func(release, locks string) error {
		return errors.Join(os.Rename(release, release+".old"), os.MkdirAll(locks, 0o700))
	},
	"replaced by a link": func(_, locks string) error {
		return errors.Join(os.Rename(locks, locks+".old"), os.Mkdir(locks+".new", 0o700), os.Symlink(locks+".new", locks))
	},
}

// Processes that come later go by the path, and would not see the leases of those who
// write to the old directory. So nobody writes there, and what is held is lost.
func TestAStoreWhoseDirectoryWasReplacedGrantsNothing(t *testing.T) {
	for what, replace := range replacements {
		release := filepath.Join(newDir(t), "release")
		locks := filepath.Join(release, "locks")
		s := open(t, locks)
		token := grant(t, s, "held", time.Hour)
		freed, stop, err := s.Watch(t.Context(), "watched")
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		if err := replace(release, locks); err != nil {
			t.Fatal(what, err)
		}
		for op, call := range calls(s, token) {
			for _, key := range []string{"held", "free"} {
				err := call(t.Context(), key)
				if err == nil || !strings.Contains(err.Error(), "the directory of the store is gone") {
					t.Errorf("%s: %s %q: %v", what, op, key, err)
				}
			}
		}
		for open := true; open; { // which the system may not tell
			_, open = <-freed
		}
		_, err = os.Stat(locks)
		if gone := what == "removed" || what == "moved"; gone != errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: it was made again behind the back of whoever took it away: %v", what, err)
		}
		if left := filesIn(t, locks, "*"); len(left) > 0 {
			t.Errorf("%s: %v was written where nobody was asked to", what, left)
		}
		if what != "replaced by a link" {
			grant(t, open(t, locks), "held", time.Hour)
		}
	}
}

// A path over a link, such as the "current" of a deployment, leads processes that start
// before and after a switch to directories of their own.
func TestNewRefusesAPathOverASymbolicLink(t *testing.T) {
	home := newDir(t)
	target := filepath.Join(home, "releases", "1", "locks")
	current := filepath.Join(home, "current")
	if err := errors.Join(os.MkdirAll(target, 0o700), os.Symlink(filepath.Join(home, "releases", "1"), current)); err != nil {
		t.Fatal(err)
	}
	for path, hint := range map[string]string{
		filepath.Join(current, "locks"):        target,
		filepath.Join(current, "yet", "to be"): "name the real path",
		current:                                filepath.Dir(target),
	} {
		_, err := filestore.New(path)
		if !errors.Is(err, filestore.ErrUnsafe) || !strings.Contains(err.Error(), current+" is a symbolic link") || !strings.Contains(err.Error(), hint) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := os.Stat(filepath.Join(home, "releases", "1", "yet")); err == nil {
		t.Error("a directory was made behind the link")
	}
	t.Chdir(home)
	if _, err := filestore.New("current/locks"); !errors.Is(err, filestore.ErrUnsafe) {
		t.Errorf("a relative path: %v", err)
	}
	grant(t, open(t, target), "nightly", time.Hour)
}

// The links of the system itself, such as /var on macOS, are taken.
func TestNewTakesAPathOverALinkInTheRootDirectory(t *testing.T) {
	inOwnMounts(t, "link in the root directory", newDir(t))
}

func init() {
	parts["link in the root directory"] = func(dir, _ string) error {
		if err := errors.Join(unix.Chroot(dir), os.Chdir("/"), os.MkdirAll("/private/var", 0o700), os.Symlink("/private/var", "/var")); err != nil {
			return err
		}
		s, err := filestore.New("/var/lib/locks")
		if err != nil {
			return err
		}
		_, err = acquired(s, "nightly")
		return err
	}
}
