package polldir

import (
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/lockfx/lockfx/layered/internal/fifo"
)

// The heartbeat waits for a file system that never answers: for this test, it is not
// there any more.
func TestDeadlineNeedsNoHeartbeat(t *testing.T) {
	path := lockPath(t)
	synctest.Test(t, func(t *testing.T) {
		start, lost := time.Now(), make(chan error, 1)
		l := mustTry(t, new(Dirs), path, func(err error) { lost <- err })
		close(l.stop)
		<-l.stopped
		if err := <-lost; !errors.Is(err, errExpired) {
			t.Errorf("lost: %v", err)
		}
		if age := time.Since(start); age >= stale {
			t.Errorf("it learned of its loss after %v, when others could have it", age)
		}
	})
}

// A process was paused beyond the deadline, and gives the lock back before its timer
// has had a chance.
func TestUnlockLooksAtTheClockItself(t *testing.T) {
	path := lockPath(t)
	synctest.Test(t, func(t *testing.T) {
		told := 0
		l := mustTry(t, new(Dirs), path, func(error) { told++ })
		l.asked = l.asked.Add(-stale)
		if err := l.Unlock(); !errors.Is(err, errExpired) || told != 1 {
			t.Errorf("Unlock = %v, told %d times", err, told)
		}
		if _, err := os.Lstat(path); err != nil {
			t.Error("what may be another's was removed")
		}
	})
}

func TestLockThatExpiresWhileItSettlesIsNotTaken(t *testing.T) {
	path := lockPath(t)
	synctest.Test(t, func(t *testing.T) {
		must(t, os.Mkdir(path, 0o700))
		asked := time.Now().Add(settle/2 - (&Lock{stale: stale}).trusted())
		l, err := claim(path, stale, asked)
		must(t, err)
		if err := l.settle(t.Context()); !errors.Is(err, fifo.ErrBusy) {
			t.Errorf("settle = %v", err)
		}
	})
}

// The monotonic clock stands still while a machine is suspended, and the wall clock
// can be set back.
func TestTheLaterClockCounts(t *testing.T) {
	now := time.Now()
	for name, since := range map[string]time.Time{
		"both":           now.Add(-stale),
		"suspended":      leapMonotonic(now.Add(-stale), stale),
		"wall, set back": leapMonotonic(now, -stale),
	} {
		if d := elapsed(since); d < stale || d > 2*stale {
			t.Errorf("%s: %v", name, d)
		}
	}
}

// leapMonotonic moves the monotonic reading of t, which it must have, and nothing
// else. Package time has no way to do this.
func leapMonotonic(t time.Time, d time.Duration) time.Time {
	fields := (*struct {
		wall uint64
		ext  int64
		loc  *time.Location
	})(unsafe.Pointer(&t))
	fields.ext += int64(d)
	return t
}
