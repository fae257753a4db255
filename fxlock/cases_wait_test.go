package fxlock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/fx"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

// The wait limit ends the waiting, and not the hold.
func TestCase_A03_TheWaitLimitDoesNotEndTheHold(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := newTallyStore()
		release := holding(t, newLock(t, store))
		lock := newLock(t, store)
		run := inBackground(func() error {
			return lock.Do(t.Context(), func(ctx context.Context, h lockfx.Holder) error {
				time.Sleep(10 * ttl)
				if ctx.Err() != nil || !h.Held() {
					t.Errorf("the hold ended with the waiting: %v", context.Cause(ctx))
				}
				return nil
			}, fxlock.Wait(time.Minute))
		})
		time.Sleep(time.Minute - 1)
		release()
		noError(t, (<-run.ended).err)
	})
}

// However long it was waited, the lease counts from the attempt that got it.
func TestCase_A04_TheLeaseCountsFromTheWinningAttempt(t *testing.T) {
	for name, hide := range map[string]func(*tallyStore) lockfx.Store{
		"woken":  func(s *tallyStore) lockfx.Store { return s },
		"polled": func(s *tallyStore) lockfx.Store { return unwatched{s} },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				store := newTallyStore()
				release := holding(t, newLock(t, store))
				lock := newLock(t, hide(store))
				run := inBackground(func() error {
					return lock.Do(t.Context(), func(_ context.Context, h lockfx.Holder) error {
						won := store.acquires[len(store.acquires)-1]
						if left := h.Deadline().Sub(won); left < ttl*9/10 || left > ttl || !won.Equal(time.Now()) {
							t.Errorf("%v after the attempt that won, there is a lease of %v", time.Since(won), left)
						}
						return nil
					}, fxlock.WaitForever())
				})
				time.Sleep(100*ttl + time.Second)
				release()
				noError(t, (<-run.ended).err)
			})
		})
	}
}

func TestCase_W01_WaitingEndsAtOnceWithItsContext(t *testing.T) {
	for name, store := range map[string]func(*tallyStore) lockfx.Store{
		"woken":      func(s *tallyStore) lockfx.Store { return s },
		"polled":     func(s *tallyStore) lockfx.Store { return unwatched{s} },
		"the outage": func(s *tallyStore) lockfx.Store { s.setDown(errStoreDown); return s },
	} {
		for _, end := range []string{"cancelled", "stopped"} {
			t.Run(name+", "+end, func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					tally := newTallyStore()
					release := holding(t, newLock(t, tally.MemoryStore))
					lock := newLock(t, store(tally))
					ctx, cancel := context.WithCancelCause(t.Context())
					defer cancel(nil)
					head := inBackground(func() error { return lock.Do(ctx, workNothing, fxlock.WaitForever()) })
					next := inBackground(func() error { return lock.Do(ctx, workNothing, fxlock.Wait(time.Hour)) })
					time.Sleep(time.Minute + 7)
					head.waits(t)
					next.waits(t)
					want := []error{context.Canceled, errWhy}
					if end == "cancelled" {
						cancel(errWhy)
					} else {
						want = []error{lockfx.ErrDisposed}
						must(t, lock.Dispose(t.Context()))
					}
					wantIs(t, head.endsNow(t), want...)
					wantIs(t, next.endsNow(t), want...)
					tally.setDown(nil)
					tally.wantLeft(t)
					release()
				})
			})
		}
	}
}

// The wait limit, the ttl and the time limit of a call are three settings.
func TestCase_W02_TheWaitIsNotCappedByTheTTL(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := newTallyStore()
		release := holding(t, newLock(t, store))
		lock := newLock(t, store, fxlock.WithCallTimeout(time.Second))
		const limit = 10*ttl + 7*time.Second
		began := time.Now()
		err := lock.Do(t.Context(), workNothing, fxlock.Wait(limit))
		if waited := time.Since(began); waited != limit {
			t.Errorf("waited for %v", waited)
		}
		wantIs(t, err, lockfx.ErrTimeout, lockfx.ErrNotAcquired)
		wantText(t, err, "waited 5m7s, and the wait limit is 5m7s", "held by ")

		slow := newLock(t, unanswering("acquire"), fxlock.WithCallTimeout(time.Second))
		err = slow.Do(t.Context(), workNothing, fxlock.Wait(time.Minute))
		wantIs(t, err, lockfx.ErrTimeout, lockfx.ErrStore)
		wantText(t, err, "the wait limit is 1m0s", "no answer within the call timeout of 1s")
		err = newLock(t, unanswering("acquire")).Do(t.Context(), workNothing, fxlock.Wait(2*ttl))
		wantIs(t, err, lockfx.ErrTimeout, lockfx.ErrStore)
		wantText(t, err, "the wait limit is 1m0s", "the ttl is 30s")
		release()
	})
}

func TestCase_W03_WhoGaveUpIsNotInTheWay(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := newTallyStore()
		lock := newLock(t, store)
		release := holding(t, lock)
		var served []int
		var calls []*call
		for i := range 10 {
			limit := fxlock.Wait(time.Duration(1+i%2) * time.Minute)
			calls = append(calls, inBackground(func() error {
				return lock.Do(t.Context(), func(context.Context, lockfx.Holder) error {
					served = append(served, i)
					return nil
				}, limit)
			}))
		}
		time.Sleep(90 * time.Second) // half of them gave up
		release()
		for i, c := range calls {
			err := c.endsNow(t)
			if i%2 == 0 {
				wantIs(t, err, lockfx.ErrTimeout, lockfx.ErrNotIdle)
			} else {
				noError(t, err)
			}
		}
		if len(served) != 5 {
			t.Errorf("served were %v", served)
		}
		for i, who := range served {
			if who != 2*i+1 {
				t.Errorf("served were %v, in this order", served)
			}
		}
		noError(t, lock.Do(t.Context(), workNothing))
		store.wantLeft(t)
	})
}

func TestCase_W04_AnOutageWhileWaitingIsTold(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := newTallyStore()
		var failures []lockfx.Event
		lock := newLock(t, store, fxlock.Observer(func(e lockfx.Event) {
			if e.Kind == lockfx.EventFailed {
				failures = append(failures, e)
			}
		}))
		store.setDown(errStoreDown)
		err := lock.Do(t.Context(), workNothing, fxlock.Wait(time.Minute))
		wantIs(t, err, lockfx.ErrTimeout, lockfx.ErrStore, errStoreDown)
		if errors.Is(err, lockfx.ErrNotAcquired) {
			t.Errorf("an outage looks like contention: %v", err)
		}
		if len(failures) != 1 || !errors.Is(failures[0].Err, errStoreDown) {
			t.Errorf("within a minute of outage it told %v", failures)
		}
		run := inBackground(func() error { return lock.Do(t.Context(), workNothing, fxlock.WaitForever()) })
		time.Sleep(time.Hour)
		run.waits(t)
		store.setDown(nil)
		noError(t, (<-run.ended).err)
	})
}

func TestCase_W05_MinHoldKeepsReplicasFromRunningInTurn(t *testing.T) {
	if runs := runsPerTick(t, fxlock.MinHold(3*time.Second)); runs != 100 {
		t.Errorf("in 100 ticks the job ran %d times", runs)
	}
	if runs := runsPerTick(t); runs < 300 {
		t.Errorf("without it the job ran %d times in 100 ticks: this test shows nothing", runs)
	}
}

// runsPerTick lets five replicas, whose clocks differ by up to two seconds, start a
// job of 50 ms at every full minute, and returns how often it ran in 100 minutes.
func runsPerTick(t *testing.T, opts ...fxlock.Option) (runs int) {
	inBubble(t, func(t *testing.T) {
		time.Sleep(30 * time.Second) // now it is between two full minutes by all clocks
		store := fxlock.NewMemoryStore()
		ctx, stop := context.WithTimeout(t.Context(), 100*time.Minute)
		defer stop()
		var replicas []*call
		for i := range 5 {
			clock := skewedClock(i) * skewedClock(500*time.Millisecond)
			var lock *fxlock.Lock
			app := fx.New(fx.NopLogger, fx.Populate(&lock),
				fxlock.Module(key, append(opts, fxlock.WithStore(store), fxlock.WithClock(clock))...))
			must(t, app.Start(t.Context()))
			replicas = append(replicas, inBackground(func() error {
				for {
					now := clock.Now()
					next := now.Truncate(time.Minute).Add(time.Minute)
					select {
					case <-time.After(next.Sub(now)):
					case <-ctx.Done():
						return app.Stop(context.Background())
					}
					err := lock.Do(ctx, func(context.Context, lockfx.Holder) error {
						runs++
						time.Sleep(50 * time.Millisecond)
						return nil
					}, onHeld())
					if err != nil {
						return err
					}
				}
			}))
		}
		for _, r := range replicas {
			noError(t, (<-r.ended).err)
		}
	})
	return runs
}

// skewedClock is behind by that much.
type skewedClock time.Duration

func (c skewedClock) Now() time.Time { return time.Now().Add(-time.Duration(c)) }

func (skewedClock) AfterFunc(d time.Duration, f func()) lockfx.Timer { return time.AfterFunc(d, f) }

// Of those who wait in one process, one asks, and only it is woken.
func TestCase_W06_AReleaseWakesOneOfAProcess(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := newTallyStore()
		const waiters = 50
		release := holding(t, newLock(t, store))
		lock := newLock(t, store)
		before := store.asked()
		var calls []*call
		for range waiters {
			calls = append(calls, inBackground(func() error { return lock.Do(t.Context(), workNothing, fxlock.WaitForever()) }))
		}
		if asked := store.asked() - before; asked != 3 {
			t.Errorf("%d waiters came, and the store was asked %d times; want acquire, watch, acquire", waiters, asked)
		}
		before = store.asked()
		time.Sleep(time.Minute)
		synctest.Wait()
		if asked := store.asked() - before; asked > 2*60/10 { // the heartbeats of the holder, and as many safety tries
			t.Errorf("within a minute the store was asked %d times", asked)
		}
		before = store.asked()
		release()
		for _, c := range calls {
			noError(t, c.endsNow(t))
		}
		if each := float64(store.asked()-before) / waiters; each > 2.1 {
			t.Errorf("a hand-off in one process took %.2f requests", each)
		}
		store.wantLeft(t)
	})
}

// Two processes in which many wait take a handful of requests for each hand-off: one
// acquires and releases, the other is woken and refused, and the next in the line of
// the first acquires, watches and acquires.
func TestWait_HandOffCostsFewRequests(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := newTallyStore()
		locks := []*fxlock.Lock{newLock(t, store), newLock(t, store)}
		release := holding(t, newLock(t, store))
		var calls []*call
		for i := range 100 {
			calls = append(calls, inBackground(func() error {
				return locks[i%2].Do(t.Context(), func(context.Context, lockfx.Holder) error {
					time.Sleep(time.Second)
					return nil
				}, fxlock.WaitForever())
			}))
		}
		before := store.asked()
		release()
		for _, c := range calls {
			noError(t, (<-c.ended).err)
		}
		if each := float64(store.asked()-before) / float64(len(calls)); each > 6 {
			t.Errorf("a hand-off took %.2f requests", each)
		}
	})
}
