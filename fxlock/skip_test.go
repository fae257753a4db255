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

type countedJob func(context.Context, ...int) (int, error)

func TestSkipIfHeldTurnsContentionIntoNil(t *testing.T) {
	refusal := &lockfx.NotAcquiredError{Key: key}
	for name, test := range map[string]struct {
		err     error
		skipped bool
	}{
		"nil":                       {nil, false},
		"held":                      {refusal, true},
		"busy":                      {&lockfx.NotAcquiredError{Key: key, Self: true}, true},
		"its own run":               {&lockfx.NotAcquiredError{Key: key, Self: true, Nested: true}, false},
		"held for all of the limit": {fmt.Errorf("%w: %w", lockfx.ErrTimeout, refusal), true},
		"held until the deadline":   {fmt.Errorf("%w: %w", context.DeadlineExceeded, refusal), true},
		"an outage":                 {lockfx.ErrStore, false},
		"a long outage":             {fmt.Errorf("%w: %w", lockfx.ErrTimeout, lockfx.ErrStore), false},
		"a cancelled wait":          {fmt.Errorf("%w: %w", context.Canceled, refusal), false},
		"a wait until the stop":     {fmt.Errorf("%w: %w", lockfx.ErrDisposed, refusal), false},
		"a stopped lock":            {lockfx.ErrDisposed, false},
		"skipped by a condition":    {&lockfx.SkippedError{Key: key}, false},
		"an error of the job":       {errWhy, false},
	} {
		t.Run(name, func(t *testing.T) {
			var got []int
			job := fxlock.SkipIfHeld(countedJob(func(_ context.Context, n ...int) (int, error) {
				got = n
				return len(n), test.err
			}))
			n, err := job(t.Context(), 1, 2, 3)
			wantN, wantErr := 3, test.err
			if test.skipped {
				wantN, wantErr = 0, nil
			}
			if n != wantN || !identical(err, wantErr) || len(got) != 3 {
				t.Errorf("it returned %d, %v, of %v", n, err, got)
			}
		})
	}
}

// What a run returns that gave up waiting is not always contention.
func TestSkipIfHeldOverAWait(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := newTallyStore()
		release := holding(t, newLock(t, store))
		defer release()
		lock := newLock(t, store)
		job := fxlock.SkipIfHeld(func(ctx context.Context) error { return lock.Do(ctx, workNothing, fxlock.Wait(time.Minute)) })
		noError(t, job(t.Context()))
		ctx, cancel := context.WithCancelCause(t.Context())
		run := inBackground(func() error { return job(ctx) })
		cancel(errWhy)
		wantIs(t, run.endsNow(t), errWhy, context.Canceled, lockfx.ErrNotAcquired)
		run = inBackground(func() error { return job(t.Context()) })
		must(t, lock.Dispose(t.Context()))
		wantIs(t, run.endsNow(t), lockfx.ErrDisposed)
	})
}

func TestSkipIfHeldTakesFunctionsThatFail(t *testing.T) {
	for name, make := range map[string]func(){
		"not a function": func() { fxlock.SkipIfHeld(7) },
		"no error":       func() { fxlock.SkipIfHeld(func() int { return 0 }) },
		"no result":      func() { fxlock.SkipIfHeld(func() {}) },
		"error first":    func() { fxlock.SkipIfHeld(errorFirst) },
		"nil":            func() { fxlock.SkipIfHeld(countedJob(nil)) },
	} {
		t.Run(name, func(t *testing.T) {
			e := endingOf(func() error { make(); return nil })
			text, _ := e.panics.(string)
			wantText(t, errors.New(text), "fxlock.SkipIfHeld: ")
		})
	}
}

//lint:ignore ST1008 that it is refused is the point
func errorFirst() (error, int) { return nil, 0 } //nolint:revive,staticcheck // as above
