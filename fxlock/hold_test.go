package fxlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/fx"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

// timeLeft returns for how long nobody else gets the key.
func timeLeft(t *testing.T, store lockfx.Inspector) time.Duration {
	t.Helper()
	lease, err := store.Inspect(t.Context(), key)
	noError(t, err)
	return lease.TimeLeft
}

func TestMinHold_KeepsTheKeyAfterAShortJob(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := newTallyStore()
		var kept time.Duration
		lock := newLock(t, store, fxlock.MinHold(time.Minute), fxlock.Observer(func(e lockfx.Event) {
			if e.Kind == lockfx.EventReleased {
				kept = e.KeptFor
			}
		}))
		second := func() error { time.Sleep(time.Second); return nil }
		noError(t, lock.Run(t.Context(), second))
		if left := timeLeft(t, store); left != 59*time.Second || kept != left || lock.State() != lockfx.StateReleased {
			t.Errorf("kept for %v, and told %v; the lock is %v", left, kept, lock.State())
		}
		// The lock itself is refused like any other; who waits for it gets it when the time
		// is over, since the shortened lease wakes.
		err := lock.Run(t.Context(), second)
		wantIs(t, err, lockfx.ErrNotAcquired)
		began := time.Now()
		noError(t, lock.Run(t.Context(), func() {
			if waited := time.Since(began); waited < 59*time.Second || waited > 59*time.Second+20*time.Millisecond {
				t.Errorf("waited for %v", waited)
			}
			time.Sleep(time.Second)
		}, fxlock.WaitForever(), fxlock.MinHold(time.Second))) // its own, instead of the lock's
		noError(t, lock.Do(t.Context(), workNothing))
		if left := timeLeft(t, store); left != time.Minute {
			t.Errorf("kept for %v", left)
		}
	})
}

// A shortest hold can be longer than a ttl, and a waiter that was told of the longer
// lease is woken by the shorter one.
func TestMinHold_WakesAWaiterWhenItIsOver(t *testing.T) {
	for _, minHold := range []time.Duration{time.Second, 10 * ttl} {
		inBubble(t, func(t *testing.T) {
			store := newTallyStore()
			holder, waiter := newLock(t, store, fxlock.MinHold(minHold)), newLock(t, store)
			began := time.Now()
			done := make(chan struct{})
			run := inBackground(func() error {
				return holder.Do(t.Context(), func(context.Context, lockfx.Holder) error { <-done; return nil })
			})
			wait := inBackground(func() error {
				return waiter.Do(t.Context(), func(context.Context, lockfx.Holder) error {
					if waited := time.Since(began); waited < minHold || waited > minHold+20*time.Millisecond {
						t.Errorf("waited for %v", waited)
					}
					return nil
				}, fxlock.WaitForever())
			})
			close(done)
			noError(t, run.endsNow(t))
			noError(t, (<-wait.ended).err)
		})
	}
}

// A run whose body never began did nothing that should not be done again soon.
func TestMinHold_IsNotOwedWhenNoBodyBegan(t *testing.T) {
	type Broken struct{}
	for name, run := range map[string]func(lock *fxlock.Lock) error{
		"a constructor failed": func(lock *fxlock.Lock) error {
			return lock.Run(context.Background(), func(Broken) { t.Error("the body ran") })
		},
		"a constructor panicked": func(lock *fxlock.Lock) error {
			return endingOf(func() error { return lock.Run(context.Background(), func(*Broken) { t.Error("the body ran") }) }).err
		},
		"cancelled meanwhile": func(lock *fxlock.Lock) error {
			ctx, cancel := context.WithCancel(context.Background())
			return lock.Run(ctx, func() { t.Error("the body ran") }, fxlock.If(func() bool { cancel(); return false }))
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := newSpyStore(new(journal))
			_ = run(newLock(t, store, fxlock.MinHold(time.Hour),
				fxlock.PerRun(func() (Broken, error) { return Broken{}, errWhy }, func() *Broken { panic(errWhy) })))
			if !store.free() {
				t.Error("the key is kept")
			}
		})
	}
}

func TestMinHold_HoldsAfterAStop(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := newTallyStore()
		var job conditionJob
		app := fx.New(fx.NopLogger, fx.Populate(&job), fxlock.Module(key, fxlock.WithStore(store), fxlock.MinHold(time.Minute),
			fxlock.Body[conditionJob](func(ctx context.Context) error { <-ctx.Done(); return nil })))
		must(t, app.Start(t.Context()))
		run := inBackground(func() error { return job(t.Context()) })
		time.Sleep(time.Second)
		noError(t, app.Stop(t.Context()))
		noError(t, run.endsNow(t))
		if left := timeLeft(t, store); left != 59*time.Second {
			t.Errorf("kept for %v", left)
		}
	})
}

func TestMaxHold_CancelsTheBody(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := newTallyStore()
		var reasons []lockfx.Reason
		lock := newLock(t, store, fxlock.MaxHold(time.Hour), fxlock.WithOnLost(func(r lockfx.Reason) { reasons = append(reasons, r) }))
		for _, d := range []time.Duration{time.Hour, time.Minute} {
			opts := []fxlock.RunOption{fxlock.MaxHold(d)}
			if d == time.Hour {
				opts = nil // the lock's own
			}
			began := time.Now()
			err := lock.Run(t.Context(), func(ctx context.Context, h lockfx.Holder) {
				<-ctx.Done()
				var lost *lockfx.LostError
				if after := time.Since(began); after != d || !errors.As(context.Cause(ctx), &lost) || lost.Reason != lockfx.ReasonMaxHold || h.Held() {
					t.Errorf("after %v: %v", after, context.Cause(ctx))
				}
				if timeLeft(t, store) == 0 {
					t.Error("released under the body")
				}
				time.Sleep(time.Second)
			}, opts...)
			wantIs(t, err, lockfx.ErrLost)
			wantText(t, err, "max hold")
			if left := timeLeft(t, store); left != 0 {
				t.Errorf("the key is kept for %v after the body", left)
			}
		}
		if len(reasons) != 2 || reasons[0] != lockfx.ReasonMaxHold || reasons[1] != lockfx.ReasonMaxHold {
			t.Errorf("OnLost heard %v", reasons)
		}
	})
}

func TestMinHold_AndMaxHoldRejectMistakes(t *testing.T) {
	module := func(opts ...fxlock.Option) error {
		return fx.New(fx.NopLogger, fxlock.Module(key, append(opts, fxlock.WithStore(newTallyStore()))...)).Err()
	}
	run := func(lockOpts []fxlock.Option, opts ...fxlock.RunOption) error {
		return newLock(t, newTallyStore(), lockOpts...).Do(t.Context(), workNothing, opts...)
	}
	for name, test := range map[string]struct {
		err   error
		parts []string
	}{
		"of a lock": {
			module(fxlock.Wait(-1), fxlock.MinHold(0), fxlock.MaxHold(-time.Second), fxlock.WithCallTimeout(0)),
			[]string{
				"fxlock.Wait(-1ns): must not be negative; fxlock.WaitForever has no limit", "fxlock.MinHold(0s): must be greater than 0",
				"fxlock.MaxHold(-1s): must be greater than 0", "fxlock.WithCallTimeout(0s): must be greater than 0",
			},
		},
		"of a run": {
			run(nil, fxlock.Wait(-1), fxlock.MinHold(-1), nil),
			[]string{"check the options", "fxlock.Wait(-1ns)", "fxlock.MinHold(-1ns)", "run option 3 is nil"},
		},
		"of a body": {
			module(fxlock.Body[conditionJob](func() error { return nil }, fxlock.Wait(-1))),
			[]string{"fxlock.Body[fxlock_test.conditionJob](", "fxlock.Wait(-1ns)"},
		},
		"min over max of a lock": {module(fxlock.MinHold(2*time.Second), fxlock.MaxHold(time.Second)), []string{"min hold 2s must be at most the max hold of 1s"}},
		"min over max of a run":  {run(options(fxlock.MaxHold(time.Second)), fxlock.MinHold(2*time.Second)), []string{"fxlock.MinHold(2s) must be at most fxlock.MaxHold(1s)"}},
		"min over max of a body": {
			module(fxlock.MinHold(2*time.Second), fxlock.Body[conditionJob](func() error { return nil }, fxlock.MaxHold(time.Second))),
			[]string{"fxlock.Body[", "fxlock.MinHold(2s) must be at most fxlock.MaxHold(1s)"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			wantIs(t, test.err, lockfx.ErrConfig)
			wantText(t, test.err, test.parts...)
		})
	}
}

func TestHoldOptions_PrintAsTheyAreWritten(t *testing.T) {
	for want, o := range map[string]interface{ String() string }{
		"fxlock.Wait(1s)":            fxlock.Wait(time.Second),
		"fxlock.WaitForever()":       fxlock.WaitForever(),
		"fxlock.MinHold(1m0s)":       fxlock.MinHold(time.Minute),
		"fxlock.MaxHold(1h0m0s)":     fxlock.MaxHold(time.Hour),
		"fxlock.WithCallTimeout(2s)": fxlock.WithCallTimeout(2 * time.Second),
		"fxlock.SkipOn(lockfx.ErrSkipped, lockfx.ErrNotAcquired)": fxlock.SkipOn(lockfx.ErrSkipped, lockfx.ErrNotAcquired),
	} {
		if o.String() != want {
			t.Errorf("it prints as %s, want %s", o, want)
		}
	}
}
