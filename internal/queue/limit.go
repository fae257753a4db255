package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockfx/lockfx"
)

var errLimit = errors.New("the wait limit is over")

// bound returns the context that the waiting ends with: ctx, the limit or the
// disposal.
func (w *waiter) bound(ctx context.Context) (_ context.Context, cancel func()) {
	wait, end := context.WithCancelCause(ctx)
	stop := context.AfterFunc(w.Machine.Disposing(), func() { end(lockfx.ErrDisposed) })
	var timer *time.Timer
	if w.Limit > 0 {
		timer = time.AfterFunc(w.Limit, func() { end(errLimit) })
	}
	return wait, func() {
		end(nil)
		stop()
		if timer != nil {
			timer.Stop()
		}
	}
}

// left returns what is left of the limit.
func (w *waiter) left() time.Duration {
	if w.Limit < 0 {
		return Forever
	}
	return max(w.Limit-time.Since(w.began), 1)
}

// gaveUp returns err, or, when the waiting has ended, why it has and what was in the
// way: that is err, unless err is of an attempt that was cut short.
func (w *waiter) gaveUp(wait context.Context, err error) error {
	cause := context.Cause(wait)
	if cause == nil && errors.Is(err, lockfx.ErrDisposed) {
		cause = lockfx.ErrDisposed // the attempt was told first
	}
	if cause == nil {
		return err
	}
	switch {
	case !errors.Is(err, cause):
	case w.last != nil:
		err = w.last
	case errors.Is(cause, errLimit):
		err = fmt.Errorf("acquire %q: %w: no answer so far", w.Machine.Key(), lockfx.ErrStore)
	}
	waited := time.Since(w.began).Round(time.Millisecond)
	switch {
	case errors.Is(cause, errLimit):
		return fmt.Errorf("%w: waited %v, and the wait limit is %v: %w", lockfx.ErrTimeout, waited, w.Limit, err)
	case errors.Is(err, cause):
		return err
	case errors.Is(cause, lockfx.ErrDisposed), errors.Is(cause, wait.Err()):
		return fmt.Errorf("stopped waiting after %v: %w: %w", waited, cause, err)
	}
	return fmt.Errorf("stopped waiting after %v: %w: %w: %w", waited, wait.Err(), cause, err)
}
