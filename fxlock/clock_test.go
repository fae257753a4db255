package fxlock_test

import (
	"errors"
	"testing"
	"time"

	"go.uber.org/fx"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

// leapingClock is moved by hand, and its timers never fire: that of a process that
// was paused, and has not run a timer since.
type leapingClock struct {
	now     time.Time
	timers  int
	noTimer bool
}

func (c *leapingClock) Now() time.Time { return c.now }

func (c *leapingClock) AfterFunc(time.Duration, func()) lockfx.Timer {
	if c.noTimer {
		return nil
	}
	c.timers++
	return c
}

func (c *leapingClock) Stop() bool {
	c.timers--
	return true
}

// A process that was paused while a scope was built does not trust its lease, even
// before a timer has fired.
func TestRun_BodyNeverBeginsWhenTheDeadlinePassedWhileItsScopeWasBuilt(t *testing.T) {
	for _, leg := range []string{"constructor", "hook"} {
		t.Run(leg, func(t *testing.T) {
			clock := &leapingClock{now: time.Now()}
			leap := func(in string) {
				if in == leg {
					clock.now = clock.now.Add(ttl)
				}
			}
			store := fxlock.NewMemoryStore(fxlock.MemoryStoreClock(clock.Now))
			lock := newLock(t, store, fxlock.WithClock(clock), fxlock.PerRun(func(lc fx.Lifecycle) *DB {
				lc.Append(fx.StartHook(func() { leap("hook") }))
				leap("constructor")
				return newDB()
			}))
			err := lock.Run(t.Context(), func(*DB) { t.Error("the body ran") })
			wantIs(t, err, lockfx.ErrLost)
			var scope *lockfx.ScopeError
			var lost *lockfx.LostError
			if !errors.As(err, &scope) || !errors.As(err, &lost) || lost.Reason != lockfx.ReasonExpired {
				t.Errorf("the run ended with %v", err)
			}
			if clock.timers != 0 {
				t.Errorf("%d timers are left", clock.timers)
			}
		})
	}
}

func TestAcquire_RefusesALeaseWithoutATimer(t *testing.T) {
	clock := &leapingClock{now: time.Now(), noTimer: true}
	store := newSpyStore(new(journal))
	var reason lockfx.Reason
	lock := newLock(t, store, fxlock.WithClock(clock), fxlock.Observer(func(e lockfx.Event) {
		if e.Kind == lockfx.EventFailed {
			reason = e.Reason
		}
	}))
	if err := lock.Run(t.Context(), func() { t.Error("the body ran") }); err == nil {
		t.Error("no error")
	}
	if reason != lockfx.ReasonTimerUnarmable || !store.free() {
		t.Errorf("reason %v, free %v", reason, store.free())
	}
}

// The default memory store lives by the lock's clock.
func TestWithClock_IsTheClockOfTheDefaultStore(t *testing.T) {
	clock := &leapingClock{now: time.Unix(2_000_000_000, 0)}
	stderrOf(t, func() { // where it warns that nobody chose a store
		lock, err := fxlock.New(fxlock.WithKey(key), fxlock.WithTTL(ttl), fxlock.WithClock(clock))
		must(t, err)
		must(t, lock.Run(t.Context(), func(token lockfx.Token) {
			if got := time.UnixMicro(int64(token)); !got.Equal(clock.now) {
				t.Errorf("the token is of %v, the clock shows %v", got, clock.now)
			}
		}))
		must(t, lock.Dispose(t.Context()))
	})
}
