package polldir

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfx/lockfx/layered/internal/fifo"
)

func TestStaleLockIsTakenAtOnce(t *testing.T) {
	path := lockPath(t)
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct {
			age   time.Duration
			taken bool
		}{
			{-time.Hour, false}, // in the future: another clock's, and not stale by ours
			{0, false},
			{stale, false},
			{stale + time.Millisecond, true},
			{time.Hour, true},
		} {
			leave(t, path, tt.age)
			l, err := new(Dirs).TryLock(path, stale, unexpected(t))
			if taken := err == nil; taken != tt.taken || !taken && !errors.Is(err, fifo.ErrBusy) {
				t.Errorf("age %v: TryLock = %v", tt.age, err)
			}
			if err != nil {
				must(t, os.Remove(path))
				continue
			}
			must(t, l.Unlock())
		}
	})
	noLitter(t, path)
}

func TestWaiterTakesALockTheMomentItIsStale(t *testing.T) {
	path := lockPath(t)
	synctest.Test(t, func(t *testing.T) {
		leave(t, path, 0)
		start := time.Now()
		l, err := new(Dirs).Lock(t.Context(), path, stale, unexpected(t))
		must(t, err)
		if waited := time.Since(start); waited < stale+settle || waited > stale+settle+2*time.Millisecond {
			t.Errorf("it waited for %v", waited)
		}
		must(t, l.Unlock())
	})
}

// proper-lockfile saw the stale lock before we broke it, and removes ours for it.
func TestRemovalRightAfterBreakingIsSeen(t *testing.T) {
	path := lockPath(t)
	synctest.Test(t, func(t *testing.T) {
		leave(t, path, time.Hour)
		var theirs atomic.Bool
		got := make(chan *Lock)
		go func() {
			l, err := new(Dirs).Lock(t.Context(), path, stale, unexpected(t))
			if err != nil || theirs.Load() {
				t.Errorf("Lock = %v while they hold it: %v", err, theirs.Load())
			}
			got <- l
		}()
		time.Sleep(settle / 2)
		must(t, os.Remove(path))
		leave(t, path, -time.Millisecond)
		theirs.Store(true)
		time.Sleep(stale / 2)
		theirs.Store(false)
		must(t, os.Remove(path))
		must(t, (<-got).Unlock())
	})
}

// Both contenders have seen the same stale lock. The first breaks it and takes the
// path; then the second goes on from what it saw.
func TestCase_H08_SecondContenderSparesTheFreshLock(t *testing.T) {
	spares := func(second func(path string, dead fs.FileInfo) error) bool {
		path := lockPath(t)
		dead := leave(t, path, time.Hour)
		fresh := mustTry(t, new(Dirs), path, func(error) {})
		err := second(path, dead)
		if err != nil && !errors.Is(err, fifo.ErrBusy) {
			t.Errorf("the second contender got %v", err)
		}
		noLitter(t, path)
		return fresh.Unlock() == nil
	}
	if !spares(func(path string, dead fs.FileInfo) error { return breakStale(path, dead, stale) }) {
		t.Error("breaking a stale lock hit a fresh one")
	}
	// It looks before it moves: there is no place to move anything to.
	if !spares(func(path string, dead fs.FileInfo) error {
		err := moveAway(path, dead, filepath.Join(path, "none", "moved"))
		if !errors.Is(err, fifo.ErrBusy) {
			t.Errorf("moveAway = %v", err)
		}
		return err
	}) {
		t.Error("a fresh lock was hit")
	}
	// Paused after its second look, it moves the fresh lock, and has to put it back.
	if !spares(func(path string, dead fs.FileInfo) error { return moveAside(path, dead, path+".moved") }) {
		t.Error("a fresh lock was moved and not put back")
	}
	if spares(func(path string, _ fs.FileInfo) error { return os.Remove(path) }) {
		t.Error("this test does not see a contender that removes a fresh lock")
	}
}

// A contender made the directory and was paused until the lock was stale and another's.
func TestPausedContenderSparesTheNextLock(t *testing.T) {
	path := lockPath(t)
	next := mustTry(t, new(Dirs), path, unexpected(t))
	l, err := claim(path, stale, time.Now().Add(-stale))
	if l != nil || !errors.Is(err, fifo.ErrBusy) {
		t.Errorf("claim = %v, %v", l, err)
	}
	must(t, next.Unlock())
}

func TestLicenceIsForOneContender(t *testing.T) {
	path := lockPath(t)
	dead := leave(t, path, time.Hour)
	licence, _ := namesFor(path, dead)
	must(t, os.Mkdir(licence, 0o700))
	if err := breakStale(path, dead, stale); !errors.Is(err, fifo.ErrBusy) {
		t.Errorf("breakStale = %v although another has the licence", err)
	}
	if _, err := os.Lstat(path); err != nil {
		t.Error("the lock was broken without a licence")
	}
	// Its holder died: the first who looks after the stale time clears it away.
	old := time.Now().Add(-2 * stale)
	must(t, os.Chtimes(licence, old, old))
	if err := breakStale(path, dead, stale); !errors.Is(err, fifo.ErrBusy) {
		t.Errorf("breakStale = %v", err)
	}
	must(t, breakStale(path, dead, stale))
	noLitter(t, path)
}

// Locks of several processes on one path, whose holders die at random, in time that
// passes only when all of them sleep.
func TestContendersOfDyingHoldersExclude(t *testing.T) {
	const processes, rounds = 4, 25
	for seed := range uint64(3) {
		path := lockPath(t)
		synctest.Test(t, func(t *testing.T) {
			var inside, held, died atomic.Int32
			for p := range processes {
				random := rand.New(rand.NewPCG(seed, uint64(p)))
				d := new(Dirs)
				go func() {
					for range rounds {
						l, err := d.Lock(t.Context(), path, stale, unexpected(t))
						if err != nil {
							t.Error(err)
							return
						}
						held.Add(1)
						if inside.Add(1) != 1 {
							t.Error("two hold it")
						}
						time.Sleep(time.Duration(random.IntN(int(2 * stale))))
						inside.Add(-1)
						if random.IntN(2) == 0 {
							died.Add(1)
							l.die()
						} else if err := l.Unlock(); err != nil {
							t.Error(err)
						}
					}
				}()
			}
			time.Sleep(processes * rounds * 4 * stale)
			synctest.Wait()
			if held.Load() != processes*rounds || died.Load() == 0 {
				t.Errorf("%d holds, %d deaths", held.Load(), died.Load())
			}
		})
		_ = os.Remove(path)
		noLitter(t, path)
	}
}

// die ends the lock as the end of its process does: the directory stays.
func (l *Lock) die() {
	close(l.stop)
	<-l.stopped
	l.deadline.Stop()
	l.dirs.queue.Unlock(l.path)
}

func noLitter(t *testing.T, path string) {
	t.Helper()
	found, err := filepath.Glob(path + ".*")
	must(t, err)
	if len(found) != 0 {
		t.Errorf("left behind: %v", found)
	}
}

func FuzzStaleLockOnDisk(f *testing.F) {
	for kind := range byte(5) {
		f.Add(kind, int64(0), "x")
		f.Add(kind, int64(-time.Hour), "y")
		f.Add(kind, int64(time.Hour), ".break-0")
	}
	f.Fuzz(func(t *testing.T, kind byte, age int64, beside string) {
		path := lockPath(t)
		mtime := time.Now().Add(-time.Duration(age))
		var precious string
		switch kind % 5 {
		case 0:
			must(t, os.Mkdir(path, 0o700))
		case 1:
			precious = path
			must(t, os.WriteFile(path, nil, 0o600))
		case 2:
			must(t, os.Symlink(t.TempDir(), path))
		case 3:
			must(t, os.Mkdir(path, 0o700))
			precious = filepath.Join(path, "precious")
			must(t, os.WriteFile(precious, nil, 0o600))
		case 4: // nothing there
		}
		if kind%5 != 4 && kind%5 != 2 {
			if os.Chtimes(path, mtime, mtime) != nil {
				return // no file system keeps that time
			}
		}
		// Whatever lies beside the lock must not matter.
		_ = os.WriteFile(filepath.Join(filepath.Dir(path), filepath.Base(fmt.Sprintf("%q", beside))), nil, 0o600)

		before := time.Now()
		l, err := new(Dirs).TryLock(path, stale, func(error) {})
		free := kind%5 == 4 || kind%5 == 0 && time.Since(mtime) > stale
		switch {
		case err == nil && !free:
			t.Fatalf("a lock of kind %d and age %v was taken", kind%5, time.Duration(age))
		case err != nil && (kind%5 == 4 || kind%5 == 0 && before.Sub(mtime) > stale):
			t.Fatalf("TryLock = %v of a lock of kind %d and age %v", err, kind%5, time.Duration(age))
		case errors.Is(err, fifo.ErrBusy) && (kind%5 == 1 || kind%5 == 2):
			t.Fatal("what is no lock was taken for one that is held")
		case err == nil:
			must(t, l.Unlock())
		}
		if precious != "" {
			if _, err := os.Lstat(precious); err != nil {
				t.Fatal(err)
			}
		}
	})
}
