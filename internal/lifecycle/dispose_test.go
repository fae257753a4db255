package lifecycle_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/lifecycle"
)

// stubborn is a body that goes on for d after it was told to end.
func stubborn(r *rig, d time.Duration) func(context.Context, *lifecycle.Hold) error {
	return func(ctx context.Context, _ *lifecycle.Hold) error {
		<-ctx.Done()
		time.Sleep(d)
		r.store.note("body")
		return context.Cause(ctx)
	}
}

func wantDisposed(t *testing.T, r *rig) {
	t.Helper()
	r.wantState(t, lockfx.StateReleased)
	if !r.Disposed() || r.Held() || r.Token() != 0 {
		t.Errorf("disposed %v, held %v, token %v", r.Disposed(), r.Held(), r.Token())
	}
	calls := r.store.calls("")
	if ok, err := r.Acquire(background); ok || !errors.Is(err, lockfx.ErrDisposed) {
		t.Errorf("Acquire = %v, %v", ok, err)
	}
	if err := r.Run(background, func(context.Context, *lifecycle.Hold) error { return nil }); !errors.Is(err, lockfx.ErrDisposed) {
		t.Errorf("Run = %v", err)
	}
	if ok, err := r.Tick(background); ok || err != nil {
		t.Errorf("Tick = %v, %v", ok, err)
	}
	r.wantRelease(t, false)
	r.wantCalls(t, calls...)
}

func TestDisposeWhenNothingIsHeld(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.dispose(t)
		r.dispose(t)
		wantDisposed(t, r)
		r.wantCalls(t)
		r.wantEvents(t, "disposed")
	})
}

func TestDisposeKeepsRenewingWhileABodyFinishes(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		const lasts = 10 * ttl
		run := spawn(func() error { return r.Run(background, stubborn(r, lasts)) })
		synctest.Wait()
		asked := time.Now()
		r.dispose(t)
		if took := time.Since(asked); took != lasts {
			t.Errorf("Dispose returned after %v", took)
		}
		if n := len(r.store.calls("renew")); n != int(lasts/beat) && n != int(lasts/beat)-1 {
			t.Errorf("%d renewals", n)
		}
		calls := r.store.calls("")
		if got := calls[len(calls)-1]; got != "release 1" {
			t.Errorf("the last call is %q", got)
		}
		if o := <-run; !errors.Is(o.err, lockfx.ErrDisposed) || errors.Is(o.err, lockfx.ErrLost) {
			t.Errorf("Run = %v", o.err)
		}
		wantDisposed(t, r)
		r.wantEvents(t, "acquired, released, disposed")
	})
}

func TestDisposeOutOfTimeNeverReleasesUnderABody(t *testing.T) {
	for _, tt := range []struct {
		name   string
		lasts  time.Duration // the body, after the disposal
		events string
		reason lockfx.Reason
	}{
		{"the body returns before the deadline", beat, "acquired, disposed, released", lockfx.ReasonNone},
		{"the lease expires under the body", time.Hour, "acquired, disposed, lost, released", lockfx.ReasonDisposed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				run := spawn(func() error { return r.Run(background, stubborn(r, tt.lasts)) })
				synctest.Wait()
				brief, cancel := context.WithTimeoutCause(background, time.Second, errCause)
				defer cancel()
				err := r.Dispose(brief)
				if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, errCause) {
					t.Errorf("Dispose = %v", err)
				}
				if want := `dispose "nightly": the body still runs under token 1; its lease is left to expire, and released when the body returns: context deadline exceeded: the user went away`; err.Error() != want {
					t.Errorf("Dispose = %v", err)
				}
				r.wantState(t, lockfx.StateHeld)
				o := <-run
				if lost := errors.Is(o.err, lockfx.ErrLost); lost != (tt.reason != 0) || !errors.Is(o.err, lockfx.ErrDisposed) {
					t.Errorf("Run = %v", o.err)
				}
				r.wantCalls(t, "acquire", "body", "release 1") // no renewal
				if tt.reason != 0 {
					r.wantLosses(t, tt.reason)
				}
				r.wantEvents(t, tt.events)
				wantDisposed(t, r)
				r.dispose(t)
			})
		})
	}
}

// Out of time while a heartbeat is under way: it is the last one.
func TestDisposeOutOfTimeDuringARenewal(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.store.renews(once(func(context.Context) { time.Sleep(2 * time.Second) }))
		run := spawn(func() error { return r.Run(background, stubborn(r, time.Hour)) })
		time.Sleep(beat)
		synctest.Wait()
		waiting := spawn(func() error { _, err := r.Tick(background); return err }) // for its turn
		synctest.Wait()
		dead, cancel := context.WithCancel(background)
		cancel()
		if err := r.Dispose(dead); !errors.Is(err, context.Canceled) {
			t.Errorf("Dispose = %v", err)
		}
		if o := <-waiting; o.err != nil {
			t.Errorf("Tick: %v", o.err)
		}
		<-run
		r.wantCalls(t, "acquire", "renew 1", "body", "release 1")
		r.wantLosses(t, lockfx.ReasonDisposed)
	})
}

func TestTickAfterDisposeNeverAsksTheStore(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		run := spawn(func() error { return r.Run(background, stubborn(r, beat/2)) })
		synctest.Wait()
		go r.dispose(t)
		synctest.Wait()
		if held, err := r.Tick(background); held || err != nil || !r.Held() {
			t.Errorf("Tick = %v, %v while the body finishes", held, err)
		}
		<-run
		r.wantCalls(t, "acquire", "body", "release 1")
	})
}

func TestDisposeAgainWaitsForTheBody(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		run := spawn(func() error { return r.Run(background, stubborn(r, time.Minute)) })
		synctest.Wait()
		dead, cancel := context.WithCancel(background)
		cancel()
		if err := r.Dispose(dead); err == nil {
			t.Error("Dispose says that all is done while a body runs")
		}
		r.dispose(t)
		r.wantState(t, lockfx.StateReleased)
		<-run
	})
}

func TestDisposeManyTimesAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		run := spawn(func() error { return r.Run(background, stubborn(r, time.Minute)) })
		synctest.Wait()
		for range 20 {
			go func() {
				r.dispose(t)
				r.wantState(t, lockfx.StateReleased)
			}()
		}
		<-run
		synctest.Wait()
		wantDisposed(t, r)
		r.wantEvents(t, "acquired, released, disposed")
		if n := len(r.store.calls("release")); n != 1 {
			t.Errorf("released %d times", n)
		}
	})
}

func TestDisposeReleasesAHoldWithoutARun(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.acquire(t)
		dead, cancel := context.WithCancel(background) // the release has a bound of its own
		cancel()
		if err := r.Dispose(dead); err != nil {
			t.Errorf("Dispose = %v", err)
		}
		r.wantCalls(t, "acquire", "release 1")
		wantDisposed(t, r)
		r.wantEvents(t, "acquired, released, disposed")
	})
}

func TestDisposeReportsAReleaseThatFailed(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.acquire(t)
		r.store.releases(always(false, errBoom))
		if err := r.Dispose(background); !errors.Is(err, errBoom) || !errors.Is(err, lockfx.ErrStore) {
			t.Errorf("Dispose = %v", err)
		}
		if e := r.seen.all()[2]; e.Kind != lockfx.EventDisposed || !errors.Is(e.Err, errBoom) {
			t.Errorf("event %v", e)
		}
		wantDisposed(t, r)
	})
}

func TestDisposeOfALostHold(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.acquire(t)
		r.store.renews(always(false, nil))
		time.Sleep(beat)
		synctest.Wait()
		r.dispose(t)
		wantDisposed(t, r)
		r.wantCalls(t, "acquire", "renew 1")
		r.wantEvents(t, "acquired, lost, released, disposed")
	})
}

func TestDisposeWaitsForAReleaseUnderWay(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.acquire(t)
		r.store.releases(once(func(context.Context) { time.Sleep(time.Second) }))
		release := spawn(func() error { _, err := r.Release(background); return err })
		synctest.Wait()
		r.wantState(t, lockfx.StateReleasing)

		dead, cancel := context.WithCancel(background)
		cancel()
		err := r.Dispose(dead)
		if want := `dispose "nightly": the lease of token 1 is still being released: context canceled`; err == nil || err.Error() != want {
			t.Errorf("Dispose = %v", err)
		}
		r.dispose(t)
		r.wantState(t, lockfx.StateReleased)
		if o := <-release; o.err != nil {
			t.Errorf("Release: %v", o.err)
		}
		wantDisposed(t, r)
	})
}

func TestReleaseAndDisposeAtOnce(t *testing.T) {
	for range 200 {
		inBubble(t, func(t *testing.T, r *rig) {
			r.acquire(t)
			r.store.releases(once(func(context.Context) { time.Sleep(time.Second) }))
			for range 3 {
				go func() {
					if _, err := r.Release(background); err != nil {
						t.Errorf("Release: %v", err)
					}
				}()
				go func() {
					r.dispose(t)
					r.wantState(t, lockfx.StateReleased)
				}()
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			r.wantCalls(t, "acquire", "release 1")
			r.wantEvents(t, "acquired, released, disposed")
		})
	}
}

func TestDisposeDuringAnAcquisitionSaysSo(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.store.acquires(func(_ context.Context, next lockfx.Token) (lockfx.Grant, error) {
			time.Sleep(time.Second) // deaf to its context
			return lockfx.Grant{OK: true, Token: next}, nil
		})
		acquisition := spawn(func() error { _, err := r.Acquire(background); return err })
		synctest.Wait()
		dead, cancel := context.WithCancel(background)
		cancel()
		err := r.Dispose(dead)
		if want := `dispose "nightly": an acquisition is still under way: context canceled`; err == nil || err.Error() != want {
			t.Errorf("Dispose = %v", err)
		}
		r.dispose(t) // this one waits, and the late lease is given back by then
		r.wantCalls(t, "acquire", "release 1")
		if o := <-acquisition; !errors.Is(o.err, lockfx.ErrDisposed) {
			t.Errorf("Acquire: %v", o.err)
		}
		wantDisposed(t, r)
		r.wantEvents(t, "disposed, failed")
	})
}

func TestDisposeEndsAnAcquisitionAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.store.acquires(func(ctx context.Context, _ lockfx.Token) (lockfx.Grant, error) {
			<-ctx.Done()
			if cause := context.Cause(ctx); !errors.Is(cause, lockfx.ErrDisposed) {
				t.Errorf("the request ended by %v", cause)
			}
			return lockfx.Grant{}, ctx.Err()
		})
		acquisition := spawn(func() error { _, err := r.Acquire(background); return err })
		synctest.Wait()
		asked := time.Now()
		r.dispose(t)
		if took := time.Since(asked); took != 0 {
			t.Errorf("it took %v", took)
		}
		if o := <-acquisition; !errors.Is(o.err, lockfx.ErrDisposed) {
			t.Errorf("Acquire: %v", o.err)
		}
		wantDisposed(t, r)
	})
}

// endingContext is a context that has ended, once somebody waits for it.
type endingContext struct {
	context.Context
	atWait func()
}

func (c endingContext) Done() <-chan struct{} {
	c.atWait()
	return c.Context.Done()
}

// The lock becomes free at the very instant at which Dispose runs out of time:
// whichever it notices first, nothing is under way any more.
func TestDisposeOutOfTimeAsTheBodyReturns(t *testing.T) {
	for range 50 {
		inBubble(t, func(t *testing.T, r *rig) {
			run := spawn(func() error { return r.Run(background, stubborn(r, time.Second)) })
			synctest.Wait()
			dead, cancel := context.WithCancel(background)
			cancel()
			if err := r.Dispose(endingContext{dead, func() { <-run }}); err != nil {
				t.Errorf("Dispose = %v", err)
			}
			r.wantState(t, lockfx.StateReleased)
		})
	}
}
