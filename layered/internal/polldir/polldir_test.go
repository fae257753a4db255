package polldir

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/lockfx/lockfx/layered/internal/fifo"
	"github.com/lockfx/lockfx/layered/internal/pace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const stale = 10 * time.Second

func lockPath(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "nightly.lock")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// leave puts the lock of another at path, refreshed this long ago.
func leave(t *testing.T, path string, age time.Duration) os.FileInfo {
	t.Helper()
	must(t, os.Mkdir(path, 0o700))
	mtime := time.Now().Add(-age)
	must(t, os.Chtimes(path, mtime, mtime))
	info, err := os.Lstat(path)
	must(t, err)
	return info
}

func mustTry(t *testing.T, d *Dirs, path string, lost func(error)) *Lock {
	t.Helper()
	l, err := d.TryLock(path, stale, lost)
	must(t, err)
	return l
}

func unexpected(t *testing.T) func(error) {
	return func(err error) { t.Errorf("lost: %v", err) }
}

func TestExcludesUntilUnlock(t *testing.T) {
	path := lockPath(t)
	ours, theirs := new(Dirs), new(Dirs) // as two processes have them
	l := mustTry(t, ours, path, unexpected(t))
	for _, d := range []*Dirs{ours, theirs} {
		if _, err := d.TryLock(path, stale, nil); !errors.Is(err, fifo.ErrBusy) {
			t.Errorf("TryLock = %v although it is held", err)
		}
	}
	info, err := os.Stat(path)
	must(t, err)
	if !info.ModTime().Equal(info.ModTime().Truncate(time.Millisecond)) {
		t.Errorf("mtime %v has more than milliseconds", info.ModTime())
	}
	must(t, l.Unlock())
	if _, err := os.Lstat(path); err == nil {
		t.Error("the directory is still there")
	}
	must(t, mustTry(t, theirs, path, unexpected(t)).Unlock())
}

func TestWaiterGetsItSoonAfterRelease(t *testing.T) {
	path := lockPath(t)
	synctest.Test(t, func(t *testing.T) {
		l := mustTry(t, new(Dirs), path, unexpected(t))
		got := make(chan time.Time)
		go func() {
			l, err := new(Dirs).Lock(t.Context(), path, stale, unexpected(t))
			if err != nil {
				t.Error(err)
				return
			}
			got <- time.Now()
			if err := l.Unlock(); err != nil {
				t.Error(err)
			}
		}()
		time.Sleep(time.Minute)
		released := time.Now()
		must(t, l.Unlock())
		if waited := (<-got).Sub(released); waited > pace.Look {
			t.Errorf("it waited for %v after the release", waited)
		}
		synctest.Wait()
	})
}

func TestHeartbeatKeepsItForHours(t *testing.T) {
	path := lockPath(t)
	synctest.Test(t, func(t *testing.T) {
		l := mustTry(t, new(Dirs), path, unexpected(t))
		for range 2000 {
			time.Sleep(stale / 3)
			if _, err := new(Dirs).TryLock(path, stale, nil); !errors.Is(err, fifo.ErrBusy) {
				t.Fatalf("TryLock = %v although it is held", err)
			}
		}
		must(t, l.Unlock())
	})
}

func TestCancelledWaiterLeavesNothing(t *testing.T) {
	path := lockPath(t)
	synctest.Test(t, func(t *testing.T) {
		leave(t, path, 0)
		d := new(Dirs)
		errGone := errors.New("gone")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errGone)
		defer cancel()
		start := time.Now()
		if _, err := d.Lock(ctx, path, stale, nil); !errors.Is(err, errGone) {
			t.Errorf("Lock = %v, want the cause", err)
		}
		if waited := time.Since(start); waited != time.Second {
			t.Errorf("it returned after %v", waited)
		}
		if d.queue.Len() != 0 {
			t.Error("the turn is still held")
		}
	})
}

func TestLossIsToldOnceAndLeavesTheNextHolderAlone(t *testing.T) {
	for name, steal := range map[string]func(*testing.T, string){
		"removed":  func(t *testing.T, path string) { must(t, os.Remove(path)) },
		"replaced": func(t *testing.T, path string) { must(t, os.Remove(path)); leave(t, path, -time.Millisecond) },
		"exchanged": func(t *testing.T, path string) { // with the mtime that we wrote
			info, err := os.Stat(path)
			must(t, err)
			must(t, os.Mkdir(path+"-new", 0o700))
			must(t, os.Remove(path))
			must(t, os.Rename(path+"-new", path))
			must(t, os.Chtimes(path, info.ModTime(), info.ModTime()))
		},
		"touched": func(t *testing.T, path string) {
			now := time.Now().Add(time.Millisecond)
			must(t, os.Chtimes(path, now, now))
		},
	} {
		for _, beat := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				path := lockPath(t)
				synctest.Test(t, func(t *testing.T) {
					var lost atomic.Int32
					l := mustTry(t, new(Dirs), path, func(error) { lost.Add(1) })
					steal(t, path)
					before, _ := os.Lstat(path)
					if beat {
						time.Sleep(stale / 2)
						synctest.Wait()
						if lost.Load() != 1 {
							t.Error("the heartbeat did not tell")
						}
					}
					if err := l.Unlock(); !errors.Is(err, errTaken) {
						t.Errorf("Unlock = %v", err)
					}
					if lost.Load() != 1 {
						t.Errorf("told %d times", lost.Load())
					}
					if after, _ := os.Lstat(path); before != nil && (after == nil || !same(before, after)) {
						t.Error("the next holder's lock was touched")
					}
				})
			})
		}
	}
}

// away makes every operation on path fail until it is called off.
func away(t *testing.T, path string) (back func()) {
	t.Helper()
	dir := filepath.Dir(path)
	must(t, os.Rename(dir, dir+"-away"))
	must(t, os.WriteFile(dir, nil, 0o600))
	return func() {
		must(t, os.Remove(dir))
		must(t, os.Rename(dir+"-away", dir))
	}
}

func TestRefreshThatFailsIsTriedUntilTheDeadline(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sub", "nightly.lock")
	must(t, os.Mkdir(filepath.Dir(path), 0o700))
	synctest.Test(t, func(t *testing.T) {
		lost := make(chan error, 1)
		l := mustTry(t, new(Dirs), path, func(err error) { lost <- err })
		back := away(t, path)
		time.Sleep(stale - 3*time.Second/2)
		back()
		time.Sleep(time.Minute)
		synctest.Wait()
		select {
		case err := <-lost:
			t.Fatalf("lost: %v, although it was refreshed in time", err)
		default:
		}
		info, err := os.Stat(path)
		must(t, err)
		back = away(t, path)
		if err := <-lost; !errors.Is(err, errExpired) {
			t.Errorf("lost: %v", err)
		}
		if age := time.Since(info.ModTime()); age >= stale {
			t.Errorf("it learned of its loss %v after the last refresh, when others could have it", age)
		}
		back()
		if err := l.Unlock(); !errors.Is(err, errExpired) {
			t.Errorf("Unlock = %v", err)
		}
		if _, err := os.Lstat(path); err != nil {
			t.Error("a lost lock was removed")
		}
	})
}

func TestRefusesWhatIsNoLock(t *testing.T) {
	dir := t.TempDir()
	file, link, others := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "others")
	must(t, os.WriteFile(file, nil, 0o600))
	must(t, os.Symlink(dir, link))
	paths := []string{file, link, filepath.Join(dir, "none", "lock")}
	if os.Geteuid() == 0 {
		leave(t, others, time.Hour)
		must(t, os.Chown(others, 65534, -1))
		paths = append(paths, others)
	}
	for _, path := range paths {
		_, err := new(Dirs).TryLock(path, stale, nil)
		if err == nil || errors.Is(err, fifo.ErrBusy) {
			t.Errorf("TryLock(%s) = %v", filepath.Base(path), err)
		}
	}
	for _, path := range []string{file, link} {
		if _, err := os.Lstat(path); err != nil {
			t.Error(err)
		}
	}
}

func TestStaleLockWithContentIsLeftAlone(t *testing.T) {
	path := lockPath(t)
	leave(t, path, 0)
	must(t, os.WriteFile(filepath.Join(path, "precious"), nil, 0o600))
	old := time.Now().Add(-time.Hour)
	must(t, os.Chtimes(path, old, old))
	if _, err := new(Dirs).TryLock(path, stale, nil); !errors.Is(err, syscall.ENOTEMPTY) && !errors.Is(err, syscall.EEXIST) {
		t.Errorf("TryLock = %v", err)
	}
	if _, err := os.Stat(filepath.Join(path, "precious")); err != nil {
		t.Error(err)
	}
}
