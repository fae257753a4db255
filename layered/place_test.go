package layered

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func dirOf(t *testing.T, opts ...Option) string {
	t.Helper()
	path, err := LockFile(append(opts, WithKey("k"))...)
	must(t, err)
	return filepath.Dir(path)
}

func TestWhereTheLockDirectoryIs(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	t.Setenv("LOCKFX_LOCK_DIR", "")
	t.Setenv("LOQKIT_LOCK_DIR", "")
	if dir := dirOf(t); filepath.Dir(dir) != filepath.Clean(os.TempDir()) || !strings.HasPrefix(filepath.Base(dir), "lockfx") {
		t.Errorf("by default %s", dir)
	}
	t.Setenv("LOQKIT_LOCK_DIR", "/loqkit")
	if dir := dirOf(t); dir != filepath.Clean("/loqkit") {
		t.Errorf("by LOQKIT_LOCK_DIR %s", dir)
	}
	t.Setenv("LOCKFX_LOCK_DIR", "relative")
	if dir, _ := filepath.Abs("relative"); dirOf(t) != dir {
		t.Errorf("by LOCKFX_LOCK_DIR %s, want %s", dirOf(t), dir)
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
