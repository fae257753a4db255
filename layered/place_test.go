package layered

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockfx/lockfx"
)

func dirOf(t *testing.T, opts ...Option) string {
	t.Helper()
	path, err := LockFile(append(opts, WithKey("k"))...)
	must(t, err)
	return filepath.Dir(path)
}

func TestWhereTheLockDirectoryIs(t *testing.T) {
	t.Setenv("LOCKFX_LOCK_DIR", "")
	t.Setenv("LOQKIT_LOCK_DIR", "")
	dir := dirOf(t)
	if !strings.HasPrefix(filepath.Base(dir), "lockfx") {
		t.Errorf("by default %s", dir)
	}
	// Processes of one user differ in these.
	for _, name := range []string{"TMPDIR", "TMP", "TEMP", "HOME", "XDG_RUNTIME_DIR", "USER", "LOGNAME"} {
		t.Setenv(name, t.TempDir())
		if got := dirOf(t); got != dir {
			t.Errorf("with another %s it is %s, not %s", name, got, dir)
		}
	}
	t.Setenv("LOQKIT_LOCK_DIR", "/loqkit")
	if dir := dirOf(t); dir != filepath.Clean("/loqkit") {
		t.Errorf("by LOQKIT_LOCK_DIR %s", dir)
	}
	t.Setenv("LOCKFX_LOCK_DIR", "/lockfx")
	if dir := dirOf(t); dir != filepath.Clean("/lockfx") {
		t.Errorf("by LOCKFX_LOCK_DIR %s", dir)
	}
	if dir := dirOf(t, WithDir("/option")); dir != filepath.Clean("/option") {
		t.Errorf("by option %s", dir)
	}
	if path, err := LockFile(WithFile("/file")); err != nil || path != filepath.Clean("/file") {
		t.Errorf("by file %s, %v", path, err)
	}
	if _, err := LockFile(); err == nil || !strings.Contains(err.Error(), "WithKey") {
		t.Errorf("without a key: %v", err)
	}
}

func TestLockDirectoryOfTheEnvironmentMustBeAbsolute(t *testing.T) {
	for _, name := range []string{"LOQKIT_LOCK_DIR", "LOCKFX_LOCK_DIR"} {
		t.Setenv(name, "locks")
		_, err := WithLock(t.Context(), 0, nothing[int], WithKey("k"))
		_, ofFile := LockFile(WithKey("k"))
		for _, err := range []error{err, ofFile} {
			if want := name + `="locks": must be an absolute path`; !errors.Is(err, lockfx.ErrConfig) || !strings.Contains(err.Error(), want) {
				t.Errorf("err = %v, want %s", err, want)
			}
		}
		// Whoever needs no file does not look there.
		_, err = WithLock(t.Context(), 0, nothing[int], WithKey("k"), onlyIn(LayerMemory))
		must(t, err)
		_, err = WithLock(t.Context(), 0, nothing[int], WithKey("k"), WithDir(t.TempDir()))
		must(t, err)
	}
	files.CloseIdle()
}

// Nothing is made before it is needed, and what is made is private.
func TestLockDirectoryIsMadeForTheLock(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	_, err := WithLock(t.Context(), 0, nothing[int], WithDir(dir), WithKey("k"), onlyIn(LayerMemory))
	must(t, err)
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Stat = %v", err)
	}
	_, err = WithLock(t.Context(), 0, nothing[int], WithDir(dir), WithKey("k"))
	must(t, err)
	info, err := os.Stat(dir)
	must(t, err)
	if info.Mode().Perm()&0o077 != 0 {
		t.Errorf("mode %v", info.Mode())
	}
	files.CloseIdle()
}
