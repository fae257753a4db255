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

// Request is what a caller asks for.
type Request struct {
	Machine *lifecycle.Machine
	// Limit is how long to wait: 0 is one try, and Forever no limit but the context.
	Limit time.Duration
	Terms lifecycle.Terms
	// Gate, if there is one, is passed before the store is asked, by the head of the
	// line alone. It waits for at most limit (as Limit), and says something for the
	// log. leave is called when the run is over.
	Gate func(ctx context.Context, limit time.Duration) (leave func() error, note string, err error)
}

// Body is what a run does under its hold.
type Body = func(context.Context, *lifecycle.Hold) error

// Idle reports whether nobody is in the line.
func (l *Line) Idle() bool {
	if !l.turn.TryAcquire(1) {
		return false
	}
	l.turn.Release(1)
	return true
}

// Run runs body under r.Machine once it is the caller's turn and the key is to be
// had. Without waiting it fails at once with Self true while the line is not
// empty. Otherwise it waits for at most r.Limit; the error then matches
// [lockfx.ErrTimeout] and says what was in the way. The limit is over when body
// begins. Waiting ends at once with ctx and with the disposal of the machine.
func (l *Line) Run(ctx context.Context, r Request, body Body) error {
	if r.Limit == 0 {
		if !l.turn.TryAcquire(1) {
			return &lockfx.NotAcquiredError{Key: r.Machine.Key(), Self: true}
		}
		defer l.turn.Release(1)
		return r.pass(ctx, 0, func() error { return r.Machine.RunOn(ctx, r.Terms, body) })
	}
	w := &waiter{Request: r, began: time.Now()}
	wait, cancel := w.bound(ctx)
	defer cancel()
	if l.turn.Acquire(wait, 1) != nil {
		return w.gaveUp(wait, &lockfx.NotAcquiredError{Key: r.Machine.Key(), Self: true})
	}
	defer l.turn.Release(1)
	return w.pass(wait, w.left(), func() error { return w.run(ctx, wait, body) })
}

// pass passes the gate, if there is one, around run.
func (r *Request) pass(ctx context.Context, limit time.Duration, run func() error) (err error) {
	if r.Gate == nil {
		return run()
	}
	leave, note, err := r.Gate(ctx, limit)
	if err != nil {
		return err
	}
	defer func() {
		if left := leave(); left != nil {
			err = errors.Join(err, left)
		}
	}()
	r.Terms.Note = note
	return run()
}

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

// gaveUp says why the waiting ended, and what was in the way.
func (w *waiter) gaveUp(wait context.Context, last error) error {
	cause := context.Cause(wait)
	if errors.Is(cause, errLimit) {
		waited := time.Since(w.began).Round(time.Millisecond)
		return fmt.Errorf("%w: waited %v, and the wait limit is %v: %w", lockfx.ErrTimeout, waited, w.Limit, last)
	}
	if errors.Is(last, cause) {
		return last
	}
	return fmt.Errorf("acquire %q: stopped waiting: %w: %w", w.Machine.Key(), cause, last)
}
