package lifecycle_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/lifecycle"
	"github.com/lockfx/lockfx/internal/memstore"
)

func over(s lockfx.Store) func(*lifecycle.Config) {
	return func(c *lifecycle.Config) { c.Store = s }
}

// cutOff is a memory store that can be cut off: calls then hang until they end.
type cutOff struct {
	*memstore.Store
	off atomic.Bool
}

func (s *cutOff) Renew(ctx context.Context, k string, token lockfx.Token, d time.Duration) (bool, error) {
	if s.off.Load() {
		return never(ctx, token)
	}
	return s.Store.Renew(ctx, k, token, d)
}

func (s *cutOff) Release(ctx context.Context, k string, token lockfx.Token) (bool, error) {
	if s.off.Load() {
		return never(ctx, token)
	}
	return s.Store.Release(ctx, k, token)
}

func TestCase_A01_ADeadContextNeverGetsTheLock(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		ctx, cancel := context.WithCancel(background)
		cancel()
		if ok, err := r.Acquire(ctx); ok || !errors.Is(err, context.Canceled) {
			t.Errorf("dead before: Acquire = %v, %v", ok, err)
		}
		r.wantCalls(t)

		ctx, cancel = context.WithCancel(background)
		r.store.acquires(func(_ context.Context, next lockfx.Token) (lockfx.Grant, error) {
			cancel()
			return lockfx.Grant{OK: true, Token: next}, nil
		})
		if ok, err := r.Acquire(ctx); ok || !errors.Is(err, context.Canceled) || r.Held() {
			t.Errorf("dead after: Acquire = %v, %v", ok, err)
		}
		r.wantCalls(t, "acquire", "release 1")
	})
}

// lateReply is a store whose grant is under way for a second.
type lateReply struct{ *memstore.Store }

func (s lateReply) Acquire(ctx context.Context, k string, d time.Duration) (lockfx.Grant, error) {
	g, err := s.Store.Acquire(ctx, k, d)
	time.Sleep(time.Second)
	return g, err
}

func TestCase_A02_ACancelledAcquisitionLeavesNoLease(t *testing.T) {
	store := memstore.New()
	inBubble(t, func(t *testing.T, r *rig) {
		ctx, cancel := context.WithTimeout(background, time.Second/2)
		defer cancel()
		if ok, err := r.Acquire(ctx); ok || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Acquire = %v, %v", ok, err)
		}
		if g, err := store.Acquire(background, key, ttl); !g.OK || err != nil { // at once
			t.Errorf("the key stays held: %+v, %v", g, err)
		}
	}, over(lateReply{store}))
}

func TestCase_A03_TheTimeoutOfAcquireDoesNotEndTheHeartbeat(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		ctx, cancel := context.WithTimeout(background, time.Second)
		defer cancel()
		if ok, err := r.Acquire(ctx); !ok || err != nil {
			t.Fatal(ok, err)
		}
		time.Sleep(10 * ttl)
		synctest.Wait()
		if !r.Held() {
			t.Errorf("the lock is %v", r.State())
		}
		r.wantRelease(t, true)
	}, over(memstore.New()))
}

func TestCase_A04_ExpiryCountsFromTheTryThatSucceeded(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.store.acquires(func(context.Context, lockfx.Token) (lockfx.Grant, error) {
			time.Sleep(ttl)
			return lockfx.Grant{}, nil
		})
		if ok, err := r.Acquire(background); ok || err != nil {
			t.Errorf("Acquire = %v, %v", ok, err)
		}
		asked := r.clock.Now()
		r.store.acquires(nil)
		if err := r.Run(background, func(_ context.Context, h *lifecycle.Hold) error {
			if got := h.Deadline().Sub(asked); got != trusted {
				t.Errorf("%v are left", got)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
		r.store.acquires(func(_ context.Context, next lockfx.Token) (lockfx.Grant, error) {
			time.Sleep(trusted)
			return lockfx.Grant{OK: true, Token: next}, nil
		})
		if ok, err := r.Acquire(background); ok || !errors.Is(err, lockfx.ErrStore) {
			t.Errorf("with nothing left: Acquire = %v, %v", ok, err)
		}
		if got := r.store.calls("release"); len(got) != 2 || got[1] != "release 3" {
			t.Errorf("given back: %q", got)
		}
	})
}

func TestCase_A05_AnOutageIsNoContention(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.store.acquires(func(context.Context, lockfx.Token) (lockfx.Grant, error) { return refused, nil })
		if ok, err := r.Acquire(background); ok || err != nil {
			t.Errorf("contention: Acquire = %v, %v", ok, err)
		}
		if err := r.Run(background, nothing); !errors.Is(err, lockfx.ErrNotAcquired) || errors.Is(err, lockfx.ErrStore) {
			t.Errorf("contention: Run = %v", err)
		}
		r.store.acquires(func(context.Context, lockfx.Token) (lockfx.Grant, error) { return lockfx.Grant{}, errBoom })
		if ok, err := r.Acquire(background); ok || !errors.Is(err, lockfx.ErrStore) {
			t.Errorf("outage: Acquire = %v, %v", ok, err)
		}
		if err := r.Run(background, nothing); !errors.Is(err, lockfx.ErrStore) || errors.Is(err, lockfx.ErrNotAcquired) {
			t.Errorf("outage: Run = %v", err)
		}
	})
}

func TestCase_R01_ACutOffHolderStopsBeforeAnotherCanWin(t *testing.T) {
	store := &cutOff{Store: memstore.New()}
	inBubble(t, func(t *testing.T, r *rig) {
		var stopped, won time.Time
		var first, second lockfx.Token
		holder := spawn(func() error {
			return r.Run(background, func(ctx context.Context, h *lifecycle.Hold) error {
				first = h.Token()
				store.off.Store(true)
				<-ctx.Done()
				stopped = time.Now()
				return nil
			})
		})
		synctest.Wait()
		for won.IsZero() { // the store itself is well, and somebody else reaches it
			time.Sleep(time.Millisecond)
			if g, err := store.Acquire(background, key, ttl); err != nil {
				t.Fatal(err)
			} else if g.OK {
				won, second = time.Now(), g.Token
			}
		}
		if o := <-holder; !errors.Is(o.err, lockfx.ErrLost) {
			t.Errorf("Run = %v", o.err)
		}
		if early := won.Sub(stopped); early < lifecycle.Margin(ttl) {
			t.Errorf("the holder stopped %v before the next one", early)
		}
		if second <= first {
			t.Errorf("the fence does not refuse the first holder: tokens %v and %v", first, second)
		}
	}, over(store))
}

func TestCase_R02_AStoreThatNeverAnswersLosesTheLease(t *testing.T) {
	for _, change := range []func(*lifecycle.Config){func(*lifecycle.Config) {}, renewRetry} {
		inBubble(t, func(t *testing.T, r *rig) {
			asked := time.Now()
			release := make(chan struct{})
			r.store.renews(once(func(context.Context) { <-release })) // deaf to its context
			err := r.Run(background, func(ctx context.Context, _ *lifecycle.Hold) error {
				<-ctx.Done()
				if at := time.Since(asked); at != trusted {
					t.Errorf("the loss came after %v", at)
				}
				return nil
			})
			if !errors.Is(err, lockfx.ErrLost) {
				t.Errorf("Run = %v", err)
			}
			r.wantLosses(t, lockfx.ReasonExpired)
			close(release)
		}, change)
	}
}

func TestCase_R03_OneTransientErrorDoesNotEndALease(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.acquire(t)
		failed := false
		r.store.renews(func(context.Context, lockfx.Token) (bool, error) {
			if !failed {
				failed = true
				return false, errBoom
			}
			return true, nil
		})
		time.Sleep(10 * ttl)
		synctest.Wait()
		if !failed || !r.Held() {
			t.Errorf("failed: %v, held: %v", failed, r.Held())
		}
		r.store.renews(always(false, nil)) // a refusal is final all the same
		time.Sleep(beat)
		r.wantLosses(t, lockfx.ReasonHeartbeatFailed)
		r.dispose(t)
	}, renewRetry)
}

func TestCase_R04_AHolderThatWasPausedDoesNotResume(t *testing.T) {
	var r *rig
	store := memstore.New(memstore.WithNow(func() time.Time { return r.clock.Now() }))
	inBubble(t, func(t *testing.T, made *rig) {
		r = made
		if err := r.Run(background, func(ctx context.Context, h *lifecycle.Hold) error {
			paused := h.Token()
			r.clock.leap(ttl, ttl) // nothing of ours has run
			next, err := store.Acquire(background, key, ttl)
			if err != nil || !next.OK {
				t.Fatal(next, err)
			}
			if h.Held() || h.Token() != 0 {
				t.Error("it trusts a lease that has passed on")
			}
			if ok, err := store.Renew(background, key, paused, ttl); ok || err != nil {
				t.Errorf("the store renews it: %v, %v", ok, err)
			}
			<-ctx.Done() // the work is cancelled by the next timer
			if lease, err := store.Inspect(background, key); lease.Token != next.Token || err != nil {
				t.Errorf("the next holder's lease is now %+v, %v", lease, err)
			}
			return nil
		}); !errors.Is(err, lockfx.ErrLost) {
			t.Errorf("Run = %v", err)
		}
		if lease, err := store.Inspect(background, key); lease.Token == 0 || err != nil {
			t.Errorf("the release touched the next holder's lease: %+v, %v", lease, err)
		}
	}, func(c *lifecycle.Config) { c.Store = store })
}

func TestCase_R05_HeartbeatsNeverOverlap(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.acquire(t)
		inside := 0
		r.store.renews(once(func(ctx context.Context) {
			if inside++; inside != 1 {
				t.Errorf("%d renewals at once", inside)
			}
			select {
			case <-time.After(beat + beat/4): // longer than the interval
			case <-ctx.Done():
			}
			inside--
		}))
		time.Sleep(20 * ttl)
		if !r.Held() || len(r.store.calls("renew")) < 20 {
			t.Errorf("held %v after %d renewals", r.Held(), len(r.store.calls("renew")))
		}
		r.dispose(t)
	})
}

func TestCase_R06_ARenewalNeverCreatesALease(t *testing.T) {
	store := memstore.New()
	inBubble(t, func(t *testing.T, r *rig) {
		r.acquire(t)
		if broken, err := store.Break(background, key); !broken || err != nil {
			t.Fatal(broken, err)
		}
		time.Sleep(10 * ttl)
		r.wantLosses(t, lockfx.ReasonHeartbeatFailed)
		if lease, err := store.Inspect(background, key); lease != (lockfx.Lease{}) || err != nil {
			t.Errorf("the key is held again: %+v, %v", lease, err)
		}
		r.dispose(t)
	}, over(store))
}

func TestCase_R08_TheLossHandlerRunsOnceAndMayPanic(t *testing.T) {
	calls := 0
	inBubble(t, func(t *testing.T, r *rig) {
		err := r.Run(background, func(ctx context.Context, _ *lifecycle.Hold) error {
			r.store.renews(always(false, nil))
			for range 5 { // many notice the loss at once
				go func() { _, _ = r.Tick(background) }()
			}
			<-ctx.Done()
			return nil
		})
		if !errors.Is(err, lockfx.ErrLost) {
			t.Errorf("Run = %v", err)
		}
		synctest.Wait()
		if calls != 1 {
			t.Errorf("it ran %d times", calls)
		}
		if err := r.Run(background, nothing); err != nil {
			t.Errorf("the next run: %v", err)
		}
	}, onLost(func(lockfx.Reason) { calls++; panic(errBoom) }))
}

func TestCase_R09_TheRenewalEndsWithTheWork(t *testing.T) {
	for how, end := range bodies {
		t.Run("body "+how, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				<-spawn(func() error {
					return r.Run(background, func(context.Context, *lifecycle.Hold) error {
						time.Sleep(beat + 1)
						return end()
					})
				})
				time.Sleep(time.Hour)
				r.wantCalls(t, "acquire", "renew 1", "release 1")
			})
		})
	}
}

func TestCase_R10_AStarvedProcessDoesNotTrustItself(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.acquire(t)
		r.clock.leap(trusted, trusted) // time passes, but no timer and no goroutine runs
		if r.Held() || r.Token() != 0 {
			t.Errorf("held %v, token %v", r.Held(), r.Token())
		}
		r.wantState(t, lockfx.StateHeld)
		r.dispose(t)
	})
}

func TestCase_L01_ACancelledRequestStillReleases(t *testing.T) {
	store := memstore.New()
	inBubble(t, func(t *testing.T, r *rig) {
		ctx, cancel := context.WithCancel(background)
		if err := r.Run(ctx, func(context.Context, *lifecycle.Hold) error { cancel(); return nil }); err != nil {
			t.Errorf("Run = %v", err)
		}
		if lease, err := store.Inspect(background, key); lease != (lockfx.Lease{}) || err != nil {
			t.Errorf("the key is still held: %+v, %v", lease, err)
		}
	}, over(store))
	inBubble(t, func(t *testing.T, r *rig) {
		r.store.releases(never)
		asked := time.Now()
		if err := r.Run(background, nothing); !errors.Is(err, lockfx.ErrTimeout) || time.Since(asked) != 3*time.Second {
			t.Errorf("Run = %v after %v, want a report", err, time.Since(asked))
		}
	}, func(c *lifecycle.Config) { c.ReleaseTimeout = 3 * time.Second })
}

// The grant is so late that the first heartbeat is due at once.
func TestCase_L02_AReleasedKeyIsNeverRenewed(t *testing.T) {
	for range 300 {
		inBubble(t, func(t *testing.T, r *rig) {
			r.store.acquires(func(_ context.Context, next lockfx.Token) (lockfx.Grant, error) {
				time.Sleep(beat)
				return lockfx.Grant{OK: true, Token: next}, nil
			})
			r.acquire(t)
			go func() { _, _ = r.Tick(background) }()
			r.wantRelease(t, true)
			time.Sleep(time.Hour)
			calls := r.store.calls("")
			if last := calls[len(calls)-1]; last != "release 1" {
				t.Errorf("calls %q", calls)
			}
		})
	}
}

func TestCase_L04_AReleaseErrorDoesNotHideTheWorks(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.store.releases(always(false, errBoom))
		o := <-spawn(func() error {
			return r.Run(background, func(context.Context, *lifecycle.Hold) error { return errBody })
		})
		checkEnd(t, o, "returns an error", errBoom, false)
	})
}

func TestCase_L05_ReleasingALostLeaseIsInstantAndQuiet(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.store.releases(never)
		r.acquire(t)
		r.lose()
		asked := time.Now()
		r.wantRelease(t, false)
		if took := time.Since(asked); took != 0 {
			t.Errorf("it took %v", took)
		}
		r.wantCalls(t, "acquire", "renew 1")
		if e := r.seen.all()[2]; e.Kind != lockfx.EventReleased || e.Err != nil {
			t.Errorf("event %v", e)
		}
	})
}

func TestCase_S01_TheLeaseIsKeptWhileTheBodyFinishes(t *testing.T) {
	store := memstore.New()
	inBubble(t, func(t *testing.T, r *rig) {
		finished := false
		run := spawn(func() error {
			return r.Run(background, func(ctx context.Context, h *lifecycle.Hold) error {
				<-ctx.Done()
				for range 100 { // much longer than the ttl
					time.Sleep(ttl / 10)
					if g, err := store.Acquire(background, key, ttl); g.OK || err != nil {
						t.Errorf("another one got it: %+v, %v", g, err)
					}
				}
				if !h.Held() {
					t.Error("the lease was lost")
				}
				finished = true
				return nil
			})
		})
		synctest.Wait()
		r.dispose(t)
		if !finished {
			t.Error("Dispose did not wait for the body")
		}
		if o := <-run; o.err != nil {
			t.Errorf("Run = %v", o.err)
		}
		if lease, err := store.Inspect(background, key); lease != (lockfx.Lease{}) || err != nil {
			t.Errorf("the key is still held: %+v, %v", lease, err)
		}
	}, over(store))
}

// The budget of the stop is used up, or nobody disposes of the lock at all: its run
// releases all the same when its body returns.
func TestCase_S05_TheRunReleasesByItself(t *testing.T) {
	for _, disposed := range []bool{false, true} {
		store := memstore.New()
		inBubble(t, func(t *testing.T, r *rig) {
			ctx, cancel := context.WithCancel(background)
			run := spawn(func() error {
				return r.Run(ctx, func(ctx context.Context, _ *lifecycle.Hold) error {
					<-ctx.Done()
					time.Sleep(beat / 2)
					return nil
				})
			})
			synctest.Wait()
			cancel()
			if disposed {
				if err := r.Dispose(ctx); !errors.Is(err, context.Canceled) {
					t.Errorf("Dispose = %v", err)
				}
			}
			if o := <-run; o.err != nil {
				t.Errorf("Run = %v", o.err)
			}
			if lease, err := store.Inspect(background, key); lease != (lockfx.Lease{}) || err != nil {
				t.Errorf("the key is still held: %+v, %v", lease, err)
			}
		}, over(store))
	}
}
