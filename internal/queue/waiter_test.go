package queue_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/queue"
)

// Bounds that the tests hold a waiter to.
const (
	longestPoll = 1250 * time.Millisecond // a second, and a quarter of jitter
	afterExpiry = 15 * time.Millisecond
	// longestSleep is how long a silent watch is relied on.
	longestSleep = time.Minute
)

// foreign lets somebody else have the key, and returns a function that gives it back.
func foreign(t testing.TB, store lockfx.Store, ttl time.Duration) (release func()) {
	t.Helper()
	grant, err := store.Acquire(lockfx.WithLabel(background, "another"), key, ttl)
	if err != nil || !grant.OK {
		t.Fatalf("Acquire = %v, %v", grant, err)
	}
	return func() {
		if ok, err := store.Release(background, key, grant.Token); !ok || err != nil {
			t.Errorf("Release = %v, %v", ok, err)
		}
	}
}

// wantQuiet checks that nothing is asked for d.
func (s *spy) wantQuiet(t testing.TB, d time.Duration) {
	t.Helper()
	synctest.Wait()
	from := time.Now().Add(1)
	time.Sleep(d)
	synctest.Wait()
	if n := len(s.asked("acquire", from)) + len(s.asked("watch", from)); n > 0 {
		t.Errorf("the store was asked %d times within %v", n, d)
	}
}

// wantWatched checks that the store is asked as seldom as a waiter does that has a watch.
func (s *spy) wantWatched(t testing.TB) {
	t.Helper()
	synctest.Wait()
	from := time.Now().Add(1)
	time.Sleep(5 * longestSleep)
	synctest.Wait()
	if asked, watched := len(s.asked("acquire", from)), len(s.asked("watch", from)); asked < 5 || asked > 7 || watched > 0 {
		t.Errorf("within %v it asked %d times, and watched %d times", 5*longestSleep, asked, watched)
	}
}

func TestAWatcherIsNotPolled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newSpy()
		release := foreign(t, store.Store, ttl)
		p := newProcess(t, store)
		began := time.Now()
		waiter := spawn(func() error { return p.run(background, queue.Forever, nothing) })
		if asked, watched := store.asked("acquire", began), store.asked("watch", began); len(asked) != 2 || len(watched) != 1 {
			t.Errorf("asked %v, watched %v: want acquire, watch, acquire", asked, watched)
		}
		store.wantQuiet(t, ttl-time.Second)
		release()
		wantNow(t, waiter)
		if n := store.watching(); n != 0 {
			t.Errorf("%d watches are left", n)
		}
	})
}

func TestTheExpiryOfALeaseWakesWithoutASignal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newSpy()
		foreign(t, store.Store, ttl)
		p := newProcess(t, store)
		began := time.Now()
		waiter := spawn(func() error { return p.run(background, queue.Forever, nothing) })
		e := <-waiter
		if late := e.at.Sub(began) - ttl; e.err != nil || late < 0 || late > afterExpiry {
			t.Errorf("%v after the end of the lease: %v", late, e.err)
		}
		if asked := store.asked("acquire", began); len(asked) != 3 {
			t.Errorf("the store was asked at %v", asked)
		}
	})
}

// silent grants nothing and does not say how long that can last.
func silent(context.Context, string, time.Duration) (lockfx.Grant, error) {
	return lockfx.Grant{}, nil
}

type answers struct {
	lockfx.Store
	acquire func(context.Context, string, time.Duration) (lockfx.Grant, error)
}

func (a answers) Acquire(ctx context.Context, k string, d time.Duration) (lockfx.Grant, error) {
	return a.acquire(ctx, k, d)
}

type watchedAnswers struct {
	answers
	lockfx.Watcher
}

func TestPollingIsJitteredAndBounded(t *testing.T) {
	for name, test := range map[string]struct {
		left              time.Duration // that the store says
		watched           bool
		shortest, longest time.Duration
	}{
		"unknown":         {0, false, 375 * time.Millisecond, 625 * time.Millisecond},
		"unknown, woken":  {0, true, 750 * time.Millisecond, longestPoll},
		"long":            {time.Hour, false, 750 * time.Millisecond, longestPoll},
		"long, woken":     {time.Hour, true, longestSleep - longestSleep/4, longestSleep},
		"short":           {200 * time.Millisecond, false, 200 * time.Millisecond, 205 * time.Millisecond},
		"moments":         {1, false, 10 * time.Millisecond, afterExpiry},
		"moments, woken":  {1, true, 10 * time.Millisecond, afterExpiry},
		"negative, woken": {-time.Second, true, 750 * time.Millisecond, longestPoll},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var at []time.Time
				mem := newSpy()
				counted := answers{mem.Store, func(ctx context.Context, k string, d time.Duration) (lockfx.Grant, error) {
					at = append(at, time.Now())
					grant, err := silent(ctx, k, d)
					grant.RetryAfter = test.left
					return grant, err
				}}
				var store lockfx.Store = polled{counted}
				if test.watched {
					store = watchedAnswers{counted, mem}
				}
				p := newProcess(t, store)
				err := p.run(background, 100*test.longest, nothing)
				wantIs(t, err, lockfx.ErrTimeout, lockfx.ErrNotAcquired)
				if test.watched {
					at = at[1:] // it asked again after it had begun to watch
				}
				if len(at) < 99 {
					t.Errorf("it asked %d times", len(at))
				}
				gaps := map[time.Duration]bool{}
				for i := 1; i < len(at); i++ {
					gap := at[i].Sub(at[i-1])
					gaps[gap] = true
					if gap < test.shortest || gap > test.longest {
						t.Errorf("it asked again after %v, want %v to %v", gap, test.shortest, test.longest)
					}
				}
				if len(gaps) < len(at)/2 {
					t.Errorf("%d attempts were made at %d different distances: they are not jittered", len(at), len(gaps))
				}
			})
		})
	}
}

func TestOnlyTheHeadAsks(t *testing.T) {
	for name, hide := range map[string]func(*spy) lockfx.Store{
		"woken":  func(s *spy) lockfx.Store { return s },
		"polled": func(s *spy) lockfx.Store { return polled{s} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				requests := func(waiters int) int {
					store := newSpy()
					release := foreign(t, store.Store, time.Hour)
					p := newProcess(t, hide(store))
					began := time.Now()
					var calls []<-chan ended
					for range waiters {
						calls = append(calls, spawn(func() error { return p.run(background, 10*time.Second, nothing) }))
					}
					for _, call := range calls {
						wantIs(t, (<-call).err, lockfx.ErrTimeout, lockfx.ErrNotAcquired)
					}
					release()
					return len(store.asked("acquire", began))
				}
				one, many := requests(1), requests(50)
				if most := 20; one > most || many > most { // ten seconds of polling, with some jitter
					t.Errorf("one waiter asked %d times, and 50 waiters %d times", one, many)
				}
			})
		})
	}
}

// Missed hears of each attempt that is followed by another one, also of those that are
// not announced.
func TestMissed_HearsOfEachAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newSpy()
		p := newProcess(t, store)
		release := foreign(t, store.Store, ttl)
		var missed []error
		waiter := spawn(func() error {
			r := queue.Request{Machine: p.Machine, Limit: queue.Forever, Missed: func(err error) { missed = append(missed, err) }}
			return p.line.Run(background, r, nothing)
		})
		store.down(errDown)
		release() // which wakes
		time.Sleep(time.Second)
		store.up()
		time.Sleep(2 * time.Second)
		wantNow(t, waiter)
		var refusal *lockfx.NotAcquiredError
		if len(missed) < 4 || !errors.As(missed[0], &refusal) || refusal.HeldBy != "another" || !errors.Is(missed[len(missed)-1], errDown) {
			t.Errorf("missed %v", missed)
		}
	})
}
