package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/lifecycle"
)

// observer adds an observer before the diary.
func observer(observe func(lockfx.Event)) func(*lifecycle.Config) {
	return func(c *lifecycle.Config) {
		c.Observers = append([]func(lockfx.Event){observe}, c.Observers...)
	}
}

func onLost(f func(lockfx.Reason)) func(*lifecycle.Config) {
	return func(c *lifecycle.Config) { c.OnLost = f }
}

func nothing(context.Context, *lifecycle.Hold) error { return nil }

// lose makes the next heartbeat fail and lets it happen.
func (r *rig) lose() {
	r.store.renews(always(false, nil))
	time.Sleep(beat)
	synctest.Wait()
}

func TestEventsTellWhatHappened(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		start := r.clock.Now()
		r.acquire(t)
		r.lose()
		time.Sleep(time.Second)
		r.wantRelease(t, false)

		r.store.acquires(func(context.Context, lockfx.Token) (lockfx.Grant, error) { return refused, nil })
		if ok, err := r.Acquire(background); ok || err != nil {
			t.Errorf("Acquire = %v, %v", ok, err)
		}
		r.store.acquires(func(context.Context, lockfx.Token) (lockfx.Grant, error) { return lockfx.Grant{}, errBoom })
		if err := r.Run(background, nothing); !errors.Is(err, errBoom) {
			t.Errorf("Run = %v", err)
		}
		r.store.acquires(nil)
		r.store.releases(always(false, nil))
		r.acquire(t)
		r.wantRelease(t, false)
		r.dispose(t)

		want := []string{
			`0s "report" acquired (token 1) held 0s by "" for 0s`,
			`10s "report" lost (token 1): heartbeat failed held 10s by "" for 0s`,
			`11s "report" released (token 1): heartbeat failed held 11s by "" for 0s`,
			`11s "report" refused held 0s by "another" for 1s`,
			`11s "report" failed: store error: acquire "nightly": store failed: boom held 0s by "" for 0s`,
			`11s "report" acquired (token 4) held 0s by "" for 0s`,
			`11s "report" released (token 4): released: release "nightly": lease lost: the store no longer knows token 4 held 0s by "" for 0s`,
			`11s "report" disposed held 0s by "" for 0s`,
		}
		var got []string
		for _, e := range r.seen.all() {
			if e.Key != key {
				t.Errorf("key %q", e.Key)
			}
			got = append(got, fmt.Sprintf("%v %v held %v by %q for %v", e.At.Sub(start), e, e.HeldFor, e.HeldBy, max(e.RetryAfter, e.KeptFor)))
		}
		if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
			t.Errorf("events:\n%s\nwant:\n%s", g, w)
		}
	}, func(c *lifecycle.Config) { c.Name = "report" })
}

func TestOnLostPanicsOnce(t *testing.T) {
	calls := 0
	inBubble(t, func(t *testing.T, r *rig) {
		r.acquire(t)
		r.lose()
		r.wantEvents(t, "acquired, lost, callback panicked")
		if e := r.seen.all()[2]; e.Token != 1 || e.Err.Error() != `callback for "lost" panicked: boom` {
			t.Errorf("event %v", e)
		}
		if calls != 1 {
			t.Errorf("OnLost was called %d times", calls)
		}
		r.wantState(t, lockfx.StateLost)
		r.dispose(t)
	}, onLost(func(lockfx.Reason) { calls++; panic("boom") }))
}

func TestAnObserverThatAlwaysPanics(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		if err := r.Run(background, nothing); err != nil {
			t.Error(err)
		}
		r.dispose(t)
		r.wantEvents(t, "acquired, callback panicked, released, callback panicked, disposed, callback panicked")
	}, observer(func(lockfx.Event) { panic(errBoom) }))
}

// Whoever is told ends the goroutine that tells: the others are told all the same,
// and the lock goes on.
func TestAnObserverThatEndsTheGoroutine(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		ended := func(what string, f func() error) {
			t.Helper()
			synctest.Wait() // for the goroutine that took over
			if o := <-spawn(f); o.returned || o.panicked != nil {
				t.Errorf("%s: %+v", what, o)
			}
		}
		ended("Acquire", func() error { _, err := r.Acquire(background); return err })
		if !r.Held() { // held until somebody releases it, as ever
			t.Error("the hold is gone")
		}
		ended("Release", func() error { _, err := r.Release(background); return err })
		ended("Run", func() error {
			return r.Run(background, func(context.Context, *lifecycle.Hold) error {
				t.Error("the body ran on a goroutine that had ended")
				return nil
			})
		})
		r.wantCalls(t, "acquire", "release 1", "acquire", "release 2")

		r.store.acquires(func(context.Context, lockfx.Token) (lockfx.Grant, error) { return lockfx.Grant{}, nil })
		ended("a refused Acquire", func() error { _, err := r.Acquire(background); return err })
		r.store.acquires(nil)
		ended("Acquire", func() error { _, err := r.Acquire(background); return err })
		r.lose()
		ended("Release of a lost lease", func() error { _, err := r.Release(background); return err })
		ended("Dispose", func() error { return r.Dispose(background) })
		r.wantEvents(t, "acquired, released, acquired, released, refused, acquired, lost, released, disposed")
		r.wantLosses(t, lockfx.ReasonHeartbeatFailed)
		wantDisposed(t, r)
	}, observer(func(lockfx.Event) { runtime.Goexit() }))
}

func TestOnLostMayEndTheGoroutine(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.acquire(t)
		r.store.renews(always(false, nil))
		if o := <-spawn(func() error { _, err := r.Tick(background); return err }); o.returned {
			t.Errorf("Tick: %+v", o)
		}
		r.wantEvents(t, "acquired, lost")
		r.dispose(t)
		r.wantEvents(t, "acquired, lost, released, disposed")
	}, onLost(func(lockfx.Reason) { runtime.Goexit() }))
}

// losing are the ways for a lease to be lost, by who notices it.
var losing = map[string]func(r *rig, ctx context.Context){
	"the heartbeat": func(r *rig, ctx context.Context) {
		r.store.renews(always(false, nil))
		<-ctx.Done()
	},
	"the expiry timer": func(r *rig, ctx context.Context) {
		r.store.renews(never)
		<-ctx.Done()
	},
	"a tick": func(r *rig, ctx context.Context) {
		r.store.renews(always(false, nil))
		go func() { _, _ = r.Tick(background) }()
		<-ctx.Done()
	},
	"a tick of the body": func(r *rig, _ context.Context) {
		r.store.renews(always(false, nil))
		_, _ = r.Tick(background)
	},
	"the release": func(r *rig, _ context.Context) { r.clock.leap(time.Hour, 0) },
}

func TestDisposeInOnLost(t *testing.T) {
	for by, lose := range losing {
		t.Run("noticed by "+by, func(t *testing.T) {
			var r *rig
			disposed := 0
			inBubble(t, func(t *testing.T, made *rig) {
				r = made
				o := <-spawn(func() error {
					return r.Run(background, func(ctx context.Context, _ *lifecycle.Hold) error {
						lose(r, ctx)
						return nil
					})
				})
				if !errors.Is(o.err, lockfx.ErrLost) {
					t.Errorf("Run = %+v", o)
				}
				r.wantEvents(t, "acquired, lost, released, disposed")
				wantDisposed(t, r)
				if disposed != 1 {
					t.Errorf("OnLost was called %d times", disposed)
				}
			}, onLost(func(lockfx.Reason) {
				disposed++
				if err := r.Dispose(background); err != nil {
					t.Errorf("Dispose: %v", err)
				}
			}))
		})
	}
}

// OnLost may give back a lease that is held by hand; that of a run is the run's.
func TestReleaseInOnLost(t *testing.T) {
	var r *rig
	var wantErr error
	inBubble(t, func(t *testing.T, made *rig) {
		r = made
		for by, lose := range losing {
			if by == "the release" {
				continue
			}
			r.store.renews(nil)
			r.acquire(t)
			ctx, cancel := context.WithTimeout(background, ttl)
			lose(r, ctx)
			cancel()
			synctest.Wait()
			r.wantState(t, lockfx.StateReleased)
		}
		wantErr = lockfx.ErrNotIdle
		r.store.renews(always(false, nil))
		if err := r.Run(background, func(ctx context.Context, _ *lifecycle.Hold) error {
			<-ctx.Done()
			synctest.Wait()
			return nil
		}); !errors.Is(err, lockfx.ErrLost) {
			t.Errorf("Run = %v", err)
		}
		r.dispose(t)
	}, onLost(func(lockfx.Reason) {
		if _, err := r.Release(background); !errors.Is(err, wantErr) {
			t.Errorf("Release = %v, want %v", err, wantErr)
		}
	}))
}

// The run's own goroutine is still telling of the acquisition when the lease is
// lost. It must not be the one that calls an OnLost which waits for the run.
func TestDisposeInOnLostWhileTheAcquisitionIsTold(t *testing.T) {
	var r *rig
	inBubble(t, func(t *testing.T, made *rig) {
		r = made
		r.store.renews(always(false, nil))
		o := <-spawn(func() error { return r.Run(background, nothing) })
		if !errors.Is(o.err, lockfx.ErrLost) {
			t.Errorf("Run = %+v", o)
		}
		r.wantEvents(t, "acquired, lost, released, disposed")
		wantDisposed(t, r)
	}, observer(func(e lockfx.Event) {
		if e.Kind == lockfx.EventAcquired {
			time.Sleep(ttl)
		}
	}), onLost(func(lockfx.Reason) {
		if err := r.Dispose(background); err != nil {
			t.Errorf("Dispose: %v", err)
		}
	}))
}

// The observer uses the lock that it observes, from within.
func TestAnObserverMayUseTheLock(t *testing.T) {
	var r *rig
	again := 0
	inBubble(t, func(t *testing.T, made *rig) {
		r = made
		// The observer releases it, and acquires it again, twice.
		if ok, err := r.Acquire(background); !ok || err != nil {
			t.Errorf("Acquire = %v, %v", ok, err)
		}
		r.wantState(t, lockfx.StateReleased)
		r.wantEvents(t, strings.TrimSuffix(strings.Repeat("acquired, released, ", 3), ", "))
		r.wantCalls(t, "acquire", "renew 1", "release 1", "acquire", "renew 2", "release 2", "acquire", "renew 3", "release 3")

		again = 100
		r.dispose(t)
		r.wantEvents(t, "acquired, released, acquired, released, acquired, released, disposed")
	}, observer(func(e lockfx.Event) {
		switch e.Kind {
		case lockfx.EventAcquired:
			if held, err := r.Tick(background); !held || err != nil {
				t.Errorf("Tick = %v, %v", held, err)
			}
			r.wantRelease(t, true)
		case lockfx.EventReleased:
			if again++; again < 3 {
				if ok, err := r.Acquire(background); !ok || err != nil {
					t.Errorf("Acquire = %v, %v", ok, err)
				}
			}
		case lockfx.EventDisposed:
			r.dispose(t)
		}
	}))
}

// One goroutine tells at a time, and in the order in which things happened.
func TestEventsKeepTheirOrder(t *testing.T) {
	var telling sync.Mutex
	inBubble(t, func(t *testing.T, r *rig) {
		for range 20 {
			go func() {
				for ran := 0; ran < 5; {
					if r.Run(background, nothing) == nil {
						ran++
					}
					time.Sleep(time.Millisecond)
				}
			}()
		}
		time.Sleep(time.Hour)
		r.dispose(t)
		synctest.Wait()
		events := r.seen.all()
		if len(events) != 2*20*5+1 {
			t.Errorf("%d events", len(events))
		}
		if last := events[len(events)-1]; last.Kind != lockfx.EventDisposed {
			t.Errorf("the last event is %v", last)
		}
		for i, e := range events[:len(events)-1] {
			token := lockfx.Token(i/2 + 1)
			kind := []lockfx.EventKind{lockfx.EventAcquired, lockfx.EventReleased}[i%2]
			if e.Kind != kind || e.Token != token {
				t.Fatalf("event %d is %v, want %v of token %v", i, e, kind, token)
			}
		}
	}, observer(func(lockfx.Event) {
		if !telling.TryLock() {
			t.Error("two goroutines tell at once")
			return
		}
		time.Sleep(time.Millisecond) // the lock goes on meanwhile
		telling.Unlock()
	}))
}

// Hold.OnLost is called for each loss, and waits for no observer; after the loss it is
// called at once.
func TestHoldOnLost_WaitsForNoObserver(t *testing.T) {
	var release chan struct{}
	inBubble(t, func(t *testing.T, r *rig) {
		release = make(chan struct{})
		losses := make(chan *lockfx.LostError, 3)
		err := r.Run(background, func(_ context.Context, h *lifecycle.Hold) error {
			for range 2 {
				h.OnLost(func(loss *lockfx.LostError) { losses <- loss })
			}
			r.lose()
			first := <-losses
			h.OnLost(func(loss *lockfx.LostError) { losses <- loss })
			if second, again := <-losses, <-losses; first != second || first != again || first.Reason != lockfx.ReasonHeartbeatFailed || first.Token != 1 {
				t.Errorf("the losses are %v and %v", first, again)
			}
			close(release)
			return nil
		})
		if !errors.Is(err, lockfx.ErrLost) {
			t.Errorf("Run = %v", err)
		}
	}, observer(func(e lockfx.Event) {
		if e.Kind == lockfx.EventLost {
			<-release
		}
	}))
}
