package queue

import (
	"context"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/lifecycle"
)

// Forever is the limit of a caller that waits until its context ends.
const Forever time.Duration = -1

// Queue is where the callers of one lock wait. It is safe for concurrent use.
type Queue struct {
	turn *semaphore.Weighted // first come, first served; a try never overtakes
}

// New returns an empty queue.
func New() *Queue { return &Queue{semaphore.NewWeighted(1)} }

// Request is what a caller asks for.
type Request struct {
	Machine *lifecycle.Machine
	// Limit is how long to wait: 0 is one try, and Forever no limit but the context.
	Limit time.Duration
	Terms lifecycle.Terms
	// Gate, if there is one, spares the store requests. Only the head of the queue passes
	// it, before it asks the store. A limit of 0 is one attempt; otherwise it waits until ctx
	// ends, which is within limit. note is for the log. leave is called when the run is over.
	Gate func(ctx context.Context, limit time.Duration) (leave func() error, note string, err error)
	// TTL is how long to wait at the gate before the store is asked nevertheless.
	TTL time.Duration
	// Missed, if there is one, is called by the head of the queue with what came of each
	// attempt that did not get the lock and is followed by another one.
	Missed func(error)
}

// Body is what a run does under its hold.
type Body = func(context.Context, *lifecycle.Hold) error

// Idle reports whether nobody is in the queue.
func (q *Queue) Idle() bool {
	if !q.turn.TryAcquire(1) {
		return false
	}
	q.turn.Release(1)
	return true
}

// Run runs body under r.Machine once it is the caller's turn and the key is to be
// had. Without waiting it fails at once with Self true while the queue is not
// empty. Otherwise it waits for at most r.Limit; the error then matches
// [lockfx.ErrTimeout] and says what was in the way. The limit is over when body
// begins. Waiting ends at once with ctx and with the disposal of the machine.
//
// A body that asks for the lock that it runs under would wait for itself: it is
// refused at once, with Nested true.
func (q *Queue) Run(ctx context.Context, r Request, body Body) error {
	switch {
	case r.Machine.Inside(ctx):
		return &lockfx.NotAcquiredError{Key: r.Machine.Key(), Self: true, Nested: true}
	case r.Limit == 0:
		return q.try(ctx, r, body)
	}
	w := &waiter{Request: r, began: time.Now()}
	wait, cancel := w.bound(ctx)
	defer cancel()
	if !q.turn.TryAcquire(1) {
		w.last = r.busy()
		if q.turn.Acquire(wait, 1) != nil {
			return w.gaveUp(wait, w.last)
		}
	}
	defer q.turn.Release(1)
	w.gate = w.Request.gate()
	w.gate.patience = w.TTL
	if w.Limit > 0 { // in which the store is asked as well
		w.gate.patience = min(w.TTL, w.left()/2)
	}
	return w.gate.leaveAfter(func() error { return w.run(ctx, wait, body) })
}

// try is Run without waiting.
func (q *Queue) try(ctx context.Context, r Request, body Body) error {
	switch {
	case q.turn.TryAcquire(1):
		defer q.turn.Release(1)
	case r.Machine.Disposed():
		return r.Machine.RunOn(ctx, r.Terms, body) // which says so
	default:
		return r.busy()
	}
	g := r.gate()
	return g.leaveAfter(func() error {
		if err := g.pass(ctx); err != nil {
			return err
		}
		r.Terms.Gate = g.note
		return r.Machine.RunOn(ctx, r.Terms, body)
	})
}

// busy says that somebody else of this process is in the way.
func (r *Request) busy() error {
	return &lockfx.NotAcquiredError{Key: r.Machine.Key(), Self: true}
}
