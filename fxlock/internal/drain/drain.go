// Package drain stops work in order: it lets calls in until it is closed, then
// cancels those that are inside and waits for them.
package drain

import (
	"context"
	"sync"
)

// Calls lets calls in while it is open. The zero value is open. It is safe for
// concurrent use.
type Calls struct {
	mu     sync.Mutex // guards what follows
	closed error      // why, or nil while open
	inside map[*call]struct{}
	empty  chan struct{} // made by who waits, closed when the last call leaves
}

type call struct{ cancel context.CancelCauseFunc }

// Enter lets a call in, or returns the cause that Close was given. The returned
// context ends with ctx, and with Close. leave must be called once.
func (calls *Calls) Enter(ctx context.Context) (_ context.Context, leave func(), err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	c := &call{cancel}
	calls.mu.Lock()
	defer calls.mu.Unlock()
	if calls.closed != nil {
		cancel(calls.closed)
		return nil, nil, calls.closed
	}
	if calls.inside == nil {
		calls.inside = make(map[*call]struct{})
	}
	calls.inside[c] = struct{}{}
	return ctx, func() { calls.leave(c) }, nil
}

func (calls *Calls) leave(c *call) {
	c.cancel(nil)
	calls.mu.Lock()
	defer calls.mu.Unlock()
	delete(calls.inside, c)
	if len(calls.inside) == 0 && calls.empty != nil {
		close(calls.empty)
		calls.empty = nil
	}
}

// Open lets calls in again.
func (calls *Calls) Open() {
	calls.mu.Lock()
	defer calls.mu.Unlock()
	calls.closed = nil
}

// Close refuses new calls, cancels those inside with cause, and waits until
// they have left or ctx ends; it returns the cause of ctx then.
func (calls *Calls) Close(ctx context.Context, cause error) error {
	empty := calls.close(cause)
	if empty == nil {
		return nil
	}
	select {
	case <-empty:
	case <-ctx.Done():
	}
	select {
	case <-empty:
		return nil
	default:
		return context.Cause(ctx)
	}
}

func (calls *Calls) close(cause error) <-chan struct{} {
	calls.mu.Lock()
	defer calls.mu.Unlock()
	calls.closed = cause
	if len(calls.inside) == 0 {
		return nil
	}
	for c := range calls.inside {
		c.cancel(cause)
	}
	if calls.empty == nil {
		calls.empty = make(chan struct{})
	}
	return calls.empty
}
