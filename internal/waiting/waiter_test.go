package waiting_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/lifecycle"
	"github.com/lockfx/lockfx/internal/waiting"
)

// Bounds that the tests hold a waiter to.
const (
	longestPoll = 1250 * time.Millisecond // a second, and a quarter of jitter
	afterExpiry = 15 * time.Millisecond
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

func TestAWatcherIsNotPolled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newSpy()
		release := foreign(t, store.Store, ttl)
		p := newProcess(t, store)
		began := time.Now()
		waiter := spawn(func() error { return p.run(background, waiting.Forever, nothing) })
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
		waiter := spawn(func() error { return p.run(background, waiting.Forever, nothing) })
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
		"long, woken":     {time.Hour, true, time.Hour, time.Hour + 5*time.Millisecond},
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

func TestAnOutageIsToldOnceAndRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newSpy()
		store.down(errDown)
		p := newProcess(t, store)
		began := time.Now()
		waiter := spawn(func() error { return p.run(background, waiting.Forever, nothing) })
		time.Sleep(time.Hour)
		waits(t, waiter)
		p.wantKinds(t, lockfx.EventFailed)
		if e := p.events[0]; !errors.Is(e.Err, lockfx.ErrStore) || !errors.Is(e.Err, errDown) {
			t.Errorf("it told %v", e.Err)
		}
		asked := store.asked("acquire", began)
		last := asked[len(asked)-1] - asked[len(asked)-2]
		if first := asked[1] - asked[0]; first > 100*time.Millisecond || last < 750*time.Millisecond {
			t.Errorf("the pauses go from %v to %v", first, last)
		}
		for i := 1; i < len(asked); i++ {
			if pause := asked[i] - asked[i-1]; pause > longestPoll {
				t.Errorf("it asked again after %v", pause)
			}
		}

		release := foreign(t, store.Store, 2*time.Hour)
		store.up()
		time.Sleep(2 * time.Second)
		p.wantKinds(t, lockfx.EventFailed, lockfx.EventRefused)
		store.wantQuiet(t, time.Minute) // it watches now
		release()
		wantNow(t, waiter)
		p.wantKinds(t, lockfx.EventFailed, lockfx.EventRefused, lockfx.EventAcquired, lockfx.EventReleased)
	})
}

// What comes and goes is told each time, and pauses begin anew.
func TestEachOutageIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newSpy()
		foreign(t, store.Store, time.Hour)
		p := newProcess(t, polled{store})
		waiter := spawn(func() error { return p.run(background, 50*time.Second, nothing) })
		for range 2 {
			time.Sleep(10 * time.Second)
			store.down(errDown)
			time.Sleep(10 * time.Second)
			store.up()
		}
		e := <-waiter
		wantIs(t, e.err, lockfx.ErrTimeout, lockfx.ErrNotAcquired)
		wantNot(t, e.err, lockfx.ErrStore)
		r, f := lockfx.EventRefused, lockfx.EventFailed
		p.wantKinds(t, r, f, r, f, r)
	})
}

func TestAnOutageIsTheErrorWhenTheWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newSpy()
		store.down(errDown)
		p := newProcess(t, store)
		err := p.run(background, time.Minute, nothing)
		wantIs(t, err, lockfx.ErrTimeout, lockfx.ErrStore, errDown)
		wantNot(t, err, lockfx.ErrNotAcquired)
		const want = `timed out: waited 1m0s, and the wait limit is 1m0s: acquire "nightly": store failed: the store is down`
		if err.Error() != want {
			t.Errorf("err = %v\nwant  %s", err, want)
		}
		ctx, cancel := context.WithTimeoutCause(background, time.Minute, errors.New("the job is over"))
		defer cancel()
		err = p.run(ctx, waiting.Forever, nothing)
		wantIs(t, err, context.DeadlineExceeded, lockfx.ErrStore, errDown)
		wantNot(t, err, lockfx.ErrTimeout, lockfx.ErrNotAcquired)
		const ended = `stopped waiting after 1m0s: context deadline exceeded: the job is over: acquire "nightly": store failed: the store is down`
		if err.Error() != ended {
			t.Errorf("err = %v\nwant  %s", err, ended)
		}
	})
}

func TestContentionIsTheErrorWhenTheWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newSpy()
		foreign(t, store.Store, time.Hour)
		p := newProcess(t, store)
		err := p.run(background, time.Minute, nothing)
		var refusal *lockfx.NotAcquiredError
		if !errors.As(err, &refusal) || refusal.HeldBy != "another" || refusal.Self {
			t.Errorf("err = %#v", refusal)
		}
		if want := "timed out: waited 1m0s, and the wait limit is 1m0s: " + refusal.Error(); err.Error() != want {
			t.Errorf("err = %v\nwant  %s", err, want)
		}
		p.wantKinds(t, lockfx.EventRefused)
	})
}

// What no attempt can mend is not tried again.
func TestSomeFaultsAreNotWaitedFor(t *testing.T) {
	for name, test := range map[string]struct {
		grant lockfx.Grant
		err   error
		want  error
	}{
		"a malformed grant":   {grant: lockfx.Grant{OK: true}, want: lockfx.ErrBadGrant},
		"a regressed token":   {grant: lockfx.Grant{OK: true, Token: 1}, want: lockfx.ErrFenceRegressed},
		"a rule of the store": {err: lockfx.CheckTTL(1, 2), want: lockfx.ErrConfig},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				store := answers{newSpy(), func(context.Context, string, time.Duration) (lockfx.Grant, error) {
					asked++
					return test.grant, test.err
				}}
				p := newProcess(t, store, func(c *lifecycle.Config) { c.Last = 1 })
				wantIs(t, wantNow(t, spawn(func() error { return p.run(background, waiting.Forever, nothing) }), test.want), test.want)
				if asked != 1 || !p.line.Idle() {
					t.Errorf("the store was asked %d times; the line is idle: %v", asked, p.line.Idle())
				}
			})
		})
	}
}

// A key that is freed between the refusal and the beginning of the watch signals
// nobody.
func TestAKeyThatIsFreedBeforeTheWatchBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newSpy()
		release := foreign(t, store.Store, ttl)
		store.refused = func() { store.refused = nil; release() }
		p := newProcess(t, store)
		wantNow(t, spawn(func() error { return p.run(background, waiting.Forever, nothing) }))
	})
}

func TestASpuriousSignalIsOneMoreTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newSpy()
		foreign(t, store.Store, time.Hour)
		freed := make(chan struct{}, 1)
		store.watch = func(context.Context) (<-chan struct{}, func(), error) { return freed, func() {}, nil }
		p := newProcess(t, store)
		waiter := spawn(func() error { return p.run(background, time.Minute, nothing) })
		began := time.Now()
		for range 3 {
			freed <- struct{}{}
			synctest.Wait()
		}
		if n := len(store.asked("acquire", began.Add(1))); n != 0 {
			t.Errorf("it asked %d times later on", n)
		}
		if n := len(store.asked("acquire", began)); n != 2+3 {
			t.Errorf("it asked %d times, want twice and once for each signal", n)
		}
		wantIs(t, (<-waiter).err, lockfx.ErrTimeout)
	})
}

func TestALostWatchIsMadeAnewWithoutSpinning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newSpy()
		release := foreign(t, store.Store, time.Hour)
		var mended atomic.Bool
		store.watch = func(ctx context.Context) (<-chan struct{}, func(), error) {
			if mended.Load() {
				return store.Store.Watch(ctx, key)
			}
			freed := make(chan struct{})
			close(freed)
			return freed, func() {}, nil
		}
		p := newProcess(t, store)
		began := time.Now()
		waiter := spawn(func() error { return p.run(background, waiting.Forever, nothing) })
		time.Sleep(time.Minute)
		waits(t, waiter)
		watched := store.asked("watch", began)
		if n := len(store.asked("acquire", began)); n > 170 || len(watched) > 85 || len(watched) < 50 {
			t.Errorf("within a minute it asked %d times, and watched %d times", n, len(watched))
		}
		if n := store.watching(); n != 0 {
			t.Errorf("%d lost watches were not stopped", n)
		}
		mended.Store(true)
		time.Sleep(2 * time.Second)
		store.wantQuiet(t, time.Minute)
		release()
		wantNow(t, waiter)
	})
}

func TestWithoutAWatchItPolls(t *testing.T) {
	for name, watch := range map[string]func(context.Context) (<-chan struct{}, func(), error){
		"an error":   func(context.Context) (<-chan struct{}, func(), error) { return nil, nil, errDown },
		"a panic":    func(context.Context) (<-chan struct{}, func(), error) { panic(errDown) },
		"no channel": func(context.Context) (<-chan struct{}, func(), error) { return nil, func() {}, nil },
		"no answer": func(ctx context.Context) (<-chan struct{}, func(), error) {
			<-ctx.Done()
			return nil, nil, ctx.Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newSpy()
				release := foreign(t, store.Store, time.Hour)
				store.watch = watch
				p := newProcess(t, store, func(c *lifecycle.Config) { c.CallTimeout = time.Second })
				began := time.Now()
				waiter := spawn(func() error { return p.run(background, waiting.Forever, nothing) })
				time.Sleep(time.Minute)
				waits(t, waiter)
				if asked, watched := len(store.asked("acquire", began)), len(store.asked("watch", began)); asked > 80 || asked < 25 || watched > 80 {
					t.Errorf("within a minute it asked %d times, and tried %d times to watch", asked, watched)
				}
				p.wantKinds(t, lockfx.EventRefused)
				release()
				released := time.Now()
				if e := <-waiter; e.err != nil || e.at.Sub(released) > time.Second+longestPoll {
					t.Errorf("%v after the release: %v", e.at.Sub(released), e.err)
				}
			})
		})
	}
}

// A lease that this process holds by hand is not asked for, and its end is not polled
// for.
func TestALeaseHeldByHandIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newSpy()
		p := newProcess(t, polled{store})
		if ok, err := p.Acquire(background); !ok || err != nil {
			t.Fatal(ok, err)
		}
		first := spawn(func() error { return p.run(background, time.Minute, nothing) })
		second := spawn(func() error { return p.run(background, waiting.Forever, nothing) })
		store.wantQuiet(t, time.Second)
		wantIs(t, (<-first).err, lockfx.ErrTimeout, lockfx.ErrNotIdle)
		waits(t, second)
		if ok, err := p.Release(background); !ok || err != nil {
			t.Error(ok, err)
		}
		wantNow(t, second)
	})
}

// The store frees the key a little before the machine is done with its release.
func TestASignalDuringAReleaseByHandIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slowRelease{newSpy(), time.Second}
		p := newProcess(t, store)
		if ok, err := p.Acquire(background); !ok || err != nil {
			t.Fatal(ok, err)
		}
		waiter := spawn(func() error { return p.run(background, waiting.Forever, nothing) })
		if ok, err := p.Release(background); !ok || err != nil {
			t.Error(ok, err)
		}
		wantNow(t, waiter)
	})
}

// slowRelease answers, the first time, long after it has released.
type slowRelease struct {
	*spy
	delay time.Duration
}

func (s *slowRelease) Release(ctx context.Context, k string, token lockfx.Token) (bool, error) {
	ok, err := s.spy.Release(ctx, k, token)
	time.Sleep(s.delay)
	s.delay = 0
	return ok, err
}

// Whatever the store is busy with, the end of the waiting is not waited for.
func TestARequestUnderWayIsCutShort(t *testing.T) {
	hangs := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	type end struct {
		cause error
		do    func(p *process, cancel context.CancelCauseFunc)
	}
	ends := map[string]end{
		"cancelled": {errDown, func(_ *process, cancel context.CancelCauseFunc) { cancel(errDown) }},
		"the limit": {lockfx.ErrTimeout, func(*process, context.CancelCauseFunc) {
			time.Sleep(time.Until(time.Now().Truncate(time.Hour).Add(time.Hour)))
		}},
		"disposed": {lockfx.ErrDisposed, func(p *process, _ context.CancelCauseFunc) { go func() { _ = p.Dispose(background) }() }},
	}
	for _, leg := range []string{"the first request", "a later request", "the watch"} {
		for name, end := range ends {
			t.Run(leg+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					store := newSpy()
					p := newProcess(t, store, func(c *lifecycle.Config) { c.TTL = 10 * time.Hour })
					limit := waiting.Forever
					if name == "the limit" {
						limit = time.Until(time.Now().Truncate(time.Hour).Add(time.Hour))
					}
					var seen error = lockfx.ErrNotAcquired
					switch leg {
					case "the first request":
						store.acquires(hangs)
						seen = nil
					case "a later request":
						foreign(t, store.Store, time.Minute)
					case "the watch":
						foreign(t, store.Store, time.Minute)
						store.watch = func(ctx context.Context) (<-chan struct{}, func(), error) { return nil, nil, hangs(ctx) }
					}
					ctx, cancel := context.WithCancelCause(background)
					defer cancel(nil)
					waiter := spawn(func() error { return p.run(ctx, limit, nothing) })
					store.acquires(hangs)
					time.Sleep(2 * time.Minute)
					waits(t, waiter)
					end.do(p, cancel)
					err := wantNow(t, waiter, end.cause)
					if seen != nil {
						wantIs(t, err, seen) // the last complete answer
						wantNot(t, err, lockfx.ErrStore)
					}
					if n := store.watching(); n != 0 {
						t.Errorf("%d watches are left", n)
					}
				})
			})
		}
	}
}

// Three settings bound three things, and each names itself.
func TestThreeLimitsAreToldApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newSpy()
		store.acquires(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		p := newProcess(t, store)
		err := p.run(background, 3*ttl, nothing)
		wantIs(t, err, lockfx.ErrTimeout, lockfx.ErrStore)
		for _, part := range []string{"the wait limit is 1m30s", "the ttl is 30s"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("it does not say %q: %v", part, err)
			}
		}
		p = newProcess(t, store, func(c *lifecycle.Config) { c.CallTimeout = 7 * time.Second })
		err = p.run(background, time.Minute, nothing)
		wantIs(t, err, lockfx.ErrTimeout, lockfx.ErrStore)
		for _, part := range []string{"the wait limit is 1m0s", "the call timeout of 7s"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("it does not say %q: %v", part, err)
			}
		}
	})
}
