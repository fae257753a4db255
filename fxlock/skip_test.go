package fxlock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

// onHeld makes contention no error.
func onHeld() fxlock.RunOption { return fxlock.SkipOn(lockfx.ErrNotAcquired) }

func TestSkipOn_HeldByAnother(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := newTallyStore()
		release := holding(t, newLock(t, store))
		var skipped []error
		lock := newLock(t, store, onHeld(), fxlock.Observer(func(e lockfx.Event) {
			if e.Kind == lockfx.EventSkipped {
				skipped = append(skipped, e.Err)
			}
		}))
		n, err := fxlock.DoValue(t.Context(), lock, func(context.Context, lockfx.Holder) (int, error) { return 7, nil })
		noError(t, err)
		noError(t, lock.Run(t.Context(), func() { t.Error("the body ran") }, fxlock.Wait(time.Minute)))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		noError(t, lock.Do(ctx, workNothing, fxlock.WaitForever())) // held until the caller's deadline
		if n != 0 || len(skipped) != 3 || !errors.Is(skipped[1], lockfx.ErrTimeout) || !errors.Is(skipped[1], lockfx.ErrNotAcquired) {
			t.Errorf("it returned %d, and skipped on %v", n, skipped)
		}
		release()
		noError(t, lock.Do(t.Context(), func(context.Context, lockfx.Holder) error {
			noError(t, lock.Do(t.Context(), workNothing)) // another caller of this process runs under it
			return nil
		}))
		if len(skipped) != 4 {
			t.Errorf("%d runs were skipped, want the one that met another of this process too", len(skipped))
		}
	})
}

// Only what is known to be contention, and nothing else besides, is no error.
func TestSkipOn_NothingElse(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := newTallyStore()
		outer := newLock(t, newSpyStore(new(journal)), onHeld())
		inner := newLock(t, store)
		release := holding(t, newLock(t, store))
		done := 0
		half := func(context.Context, lockfx.Holder) error {
			done++
			return fmt.Errorf("charge the customer: %w", inner.Do(t.Context(), workNothing))
		}
		wantIs(t, outer.Do(t.Context(), half), lockfx.ErrNotAcquired)
		wantIs(t, outer.Do(t.Context(), half, fxlock.SkipOn(lockfx.ErrSkipped)), lockfx.ErrNotAcquired)
		if done != 2 {
			t.Errorf("the body ran %d times", done)
		}

		lock := newLock(t, store, onHeld())
		ctx, cancel := context.WithCancelCause(t.Context())
		run := inBackground(func() error { return lock.Do(ctx, workNothing, fxlock.WaitForever()) })
		cancel(errWhy)
		wantIs(t, run.endsNow(t), errWhy, context.Canceled, lockfx.ErrNotAcquired)
		run = inBackground(func() error { return lock.Do(t.Context(), workNothing, fxlock.WaitForever()) })
		must(t, lock.Dispose(t.Context()))
		wantIs(t, run.endsNow(t), lockfx.ErrDisposed)
		wantIs(t, lock.Do(t.Context(), workNothing), lockfx.ErrDisposed)
		release()

		wantIs(t, outer.Do(t.Context(), func(ctx context.Context, _ lockfx.Holder) error {
			return outer.Do(ctx, workNothing) // in its own run
		}), lockfx.ErrNotIdle)
		down := newSpyStore(new(journal))
		down.down = errBody
		wantIs(t, newLock(t, down, onHeld()).Do(t.Context(), workNothing, fxlock.Wait(time.Second)), lockfx.ErrStore)
		noRelease := newSpyStore(new(journal))
		noRelease.release = func() (bool, error) { return false, errBody }
		wantIs(t, newLock(t, noRelease, fxlock.SkipOn(lockfx.ErrSkipped)).Do(t.Context(), workNothing,
			fxlock.If((&wanted{[]bool{true, false}}).next)), errBody)
	})
}

func TestSkipOn_TakesItsTwoReasons(t *testing.T) {
	lock := newLock(t, fxlock.NewMemoryStore())
	for text, o := range map[string]fxlock.RunOption{
		"fxlock.SkipOn()":      fxlock.SkipOn(),
		"fxlock.SkipOn(<nil>)": fxlock.SkipOn(nil),
		"fxlock.SkipOn(lockfx.ErrNotAcquired, store failed)": fxlock.SkipOn(lockfx.ErrNotAcquired, lockfx.ErrStore),
		"fxlock.SkipOn(not acquired)":                        fxlock.SkipOn(fmt.Errorf("%w", lockfx.ErrNotAcquired)),
	} {
		err := lock.Do(t.Context(), workNothing, o)
		wantIs(t, err, lockfx.ErrConfig)
		wantText(t, err, text+": takes lockfx.ErrNotAcquired, lockfx.ErrSkipped, or both")
	}
	noError(t, lock.Do(t.Context(), workNothing, fxlock.SkipOn(lockfx.ErrNotAcquired, lockfx.ErrSkipped)))
}
