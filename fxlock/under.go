package fxlock

import (
	"context"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/lifecycle"
	"github.com/lockfx/lockfx/internal/waiting"
)

// under runs body under the lock. condition is the run's, ready to be asked, or
// nil.
func (l *Lock) under(ctx context.Context, run runSettings, condition asker, body waiting.Body) error {
	if condition != nil {
		if yes, err := condition.ask(ctx); err != nil || !yes {
			return l.skipped(run, &lockfx.SkippedError{Key: l.Key()}, err)
		}
	}
	given := lockfx.LabelFrom(ctx)
	request := waiting.Request{Machine: l.machine.Load(), Limit: run.wait.value, Terms: run.terms(), Gate: run.gate.value.bind(l.Key())}
	var skip *lockfx.SkippedError
	err := l.line.Run(l.labelled(ctx, run), request, func(ctx context.Context, h *lifecycle.Hold) error {
		ctx = unlabelled(ctx, given)
		if condition != nil {
			yes, err := condition.ask(ctx)
			if err != nil {
				return err
			}
			if !yes {
				h.WaiveMinHold()
				skip = &lockfx.SkippedError{Key: l.Key(), Acquired: true}
				return skip
			}
		}
		return body(ctx, h)
	})
	if skip != nil {
		return l.skipped(run, skip, err)
	}
	return err
}

// skipped ends a run whose condition said no; the lock is not held any more. err is
// what else went wrong.
func (l *Lock) skipped(run runSettings, skip *lockfx.SkippedError, err error) error {
	if err != nil && err != error(skip) {
		return err
	}
	if f := run.onSkipped.value; f != nil {
		f(skip)
	}
	if run.skipIsOK.value {
		return nil
	}
	return skip
}
