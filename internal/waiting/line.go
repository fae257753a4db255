package waiting

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/lifecycle"
)

// Forever is the limit of a caller that waits until its context ends.
const Forever time.Duration = -1

// Line is where the callers of one lock wait. It is safe for concurrent use.
type Line struct {
	turn *semaphore.Weighted // first come, first served; a try never overtakes
}

// NewLine returns an empty line.
func NewLine() *Line { return &Line{semaphore.NewWeighted(1)} }

// Body is what a run does under its hold.
type Body = func(context.Context, *lifecycle.Hold) error

// Run runs body under m once it is the caller's turn and the key is to be had. A
// limit of 0 is one try, which fails at once with Self true while the line is not
// empty. Otherwise Run waits for at most limit, or without end for [Forever]; the
// error then matches [lockfx.ErrTimeout] and says what was in the way. The limit
// is over when body begins. Waiting ends at once with ctx and with the disposal of
// m.
func (l *Line) Run(ctx context.Context, m *lifecycle.Machine, limit time.Duration, terms lifecycle.Terms, body Body) error {
	if limit == 0 {
		if !l.turn.TryAcquire(1) {
			return &lockfx.NotAcquiredError{Key: m.Key(), Self: true}
		}
		defer l.turn.Release(1)
		return m.RunOn(ctx, terms, body)
	}
	w := &waiter{m: m, limit: limit, terms: terms, began: time.Now()}
	wait, cancel := w.bound(ctx)
	defer cancel(nil)
	if l.turn.Acquire(wait, 1) != nil {
		return w.gaveUp(wait, &lockfx.NotAcquiredError{Key: m.Key(), Self: true})
	}
	defer l.turn.Release(1)
	return w.run(ctx, wait, body)
}

var errLimit = errors.New("the wait limit is over")

// bound returns the context that the waiting ends with: ctx, the limit or the
// disposal.
func (w *waiter) bound(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	wait, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(w.m.Disposing(), func() { cancel(lockfx.ErrDisposed) })
	var timer *time.Timer
	if w.limit > 0 {
		timer = time.AfterFunc(w.limit, func() { cancel(errLimit) })
	}
	return wait, func(cause error) {
		cancel(cause)
		stop()
		if timer != nil {
			timer.Stop()
		}
	}
}

// gaveUp says why the waiting ended, and what was in the way.
func (w *waiter) gaveUp(wait context.Context, last error) error {
	cause := context.Cause(wait)
	if errors.Is(cause, errLimit) {
		waited := time.Since(w.began).Round(time.Millisecond)
		return fmt.Errorf("%w: waited %v, the wait limit is %v: %w", lockfx.ErrTimeout, waited, w.limit, last)
	}
	return fmt.Errorf("acquire %q: stopped waiting: %w: %w", w.m.Key(), cause, last)
}
