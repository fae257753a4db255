//go:build unix

package layered

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
)

// In a directory where everybody may write, somebody else can be first.
func TestUsersDirectoryIsNotTakenFromOthers(t *testing.T) {
	t.Setenv("LOCKFX_LOCK_DIR", "")
	t.Setenv("LOQKIT_LOCK_DIR", "")
	for name, tt := range map[string]struct {
		lay  func(dir string) error
		want error
	}{
		"open to others": {func(dir string) error { return errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o755)) }, syscall.EPERM},
		"symbolic link":  {func(dir string) error { return os.Symlink(os.TempDir(), dir) }, fs.ErrInvalid},
		"file":           {func(dir string) error { return os.WriteFile(dir, nil, 0o600) }, fs.ErrInvalid},
		"another's": {func(dir string) error {
			if os.Geteuid() != 0 { // who can't make one of another user
				return os.Mkdir(dir, 0o755)
			}
			return errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, 65534, -1))
		}, syscall.EPERM},
	} {
		useTempRoot(t)
		must(t, tt.lay(userDir()))
		for _, scope := range []Scope{{Flock: On}, {}} { // skipping flock does not help poll
			_, err := WithLock(t.Context(), 0, nothing[int], WithKey("k"), WithScope(scope))
			if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), "layered.WithDir and LOCKFX_LOCK_DIR name another directory") {
				t.Errorf("%s: err = %v, want %v", name, err, tt.want)
			}
		}
	}
}

func useTempRoot(t *testing.T) {
	t.Helper()
	before := tempRoot
	tempRoot = t.TempDir()
	t.Cleanup(func() { tempRoot = before })
}
