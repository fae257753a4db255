package fxlock

import (
	"context"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/lifecycle"
	"github.com/lockfx/lockfx/internal/waiting"
)

// under runs body under the lock. condition is the run's, ready to be asked, or
// nil. body says when the shortest hold is owed.
func (l *Lock) under(ctx context.Context, run runSettings, condition asker, body waiting.Body) error {
	if condition != nil {
		yes, err := condition.ask(ctx)
		if err != nil {
			return err
		}
		if !yes {
			return run.skipped(&lockfx.SkippedError{Key: l.Key()}, nil)
		}
	}
	given := lockfx.LabelFrom(ctx)
	request := waiting.Request{
		Machine: l.machine.Load(),
		Limit:   run.wait.value,
		Terms:   lifecycle.Terms{MaxHold: run.maxHold.value},
		Gate:    run.gate.value.bind(l.Key()),
	}
	skip := false
	err := l.line.Run(l.labelled(ctx, run), request, func(ctx context.Context, h *lifecycle.Hold) error {
		ctx = unlabelled(ctx, given)
		if condition != nil {
			yes, err := condition.ask(ctx)
			if err != nil {
				return err
			}
			if skip = !yes; skip {
				return nil
			}
		}
		return body(ctx, h)
	})
	if skip {
		return run.skipped(&lockfx.SkippedError{Key: l.Key(), Acquired: true}, err)
	}
	return err
}

// skipped ends a run whose condition said no; the lock is not held any more. err is
// what else went wrong.
func (r runSettings) skipped(skip *lockfx.SkippedError, err error) error {
	if f := r.onSkipped.value; f != nil {
		f(skip)
	}
	if r.skipIsOK.value {
		return err
	}
	return join(skip, err)
}
