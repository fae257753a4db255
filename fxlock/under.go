package fxlock

import (
	"context"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/lifecycle"
	"github.com/lockfx/lockfx/internal/waiting"
)

// under runs body under the lock. condition is the run's, or
// nil. body says when the shortest hold is owed.
func (l *Lock) under(ctx context.Context, run runSettings, condition *predicate, body waiting.Body) error {
	if condition != nil {
		yes, err := condition.evaluate(ctx)
		if err != nil {
			return err
		}
		if !yes {
			return run.skipOn.value.ended(l, &lockfx.SkippedError{Key: l.Key()}, nil)
		}
	}
	given := lockfx.LabelFrom(ctx)
	request := waiting.Request{
		Machine: l.machine.Load(),
		Limit:   run.wait.value,
		Terms:   lifecycle.Terms{MinHold: run.minHold.value, OweLater: true, MaxHold: run.maxHold.value},
		Gate:    run.gate.value.bind(l.Key()),
	}
	if run.follow != nil {
		request.Missed = run.follow.missed
	}
	began, wanted := false, true
	err := l.line.Run(l.labelled(ctx, run), request, func(ctx context.Context, h *lifecycle.Hold) error {
		ctx = unlabelled(ctx, given)
		if run.follow != nil && run.follow.granted != nil {
			run.follow.granted(h)
		}
		if condition != nil {
			yes, err := condition.evaluate(ctx)
			if err != nil {
				return err
			}
			if wanted = yes; !wanted {
				return nil
			}
		}
		began = true
		return body(ctx, h)
	})
	switch {
	case !wanted && run.follow != nil: // the lock's own event says if the release failed
		return run.skipOn.value.ended(l, &lockfx.SkippedError{Key: l.Key(), Acquired: true}, nil)
	case !wanted:
		return run.skipOn.value.ended(l, &lockfx.SkippedError{Key: l.Key(), Acquired: true}, err)
	case err != nil && !began:
		return run.skipOn.value.ended(l, err, nil)
	}
	return err
}
