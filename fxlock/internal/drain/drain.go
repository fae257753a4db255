// Package drain stops work in order: it lets calls in until it is closed, then
// cancels those that are inside and waits for them.
package drain

import (
	"context"
	"sync"
)

// Gate lets calls in while it is open. The zero value is open. It is safe for
// concurrent use.
type Gate struct {
	mu     sync.Mutex // guards what follows
	closed error      // why, or nil while open
	inside map[*call]struct{}
	empty  chan struct{} // made by who waits, closed when the last call leaves
}

type call struct{ cancel context.CancelCauseFunc }

// Enter lets a call in, or returns the cause that the gate was closed with. The
// returned context ends with ctx, and with the closing of the gate. leave must be
// called once.
func (g *Gate) Enter(ctx context.Context) (_ context.Context, leave func(), err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	c := &call{cancel}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed != nil {
		cancel(g.closed)
		return nil, nil, g.closed
	}
	if g.inside == nil {
		g.inside = make(map[*call]struct{})
	}
	g.inside[c] = struct{}{}
	return ctx, func() { g.leave(c) }, nil
}

func (g *Gate) leave(c *call) {
	c.cancel(nil)
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.inside, c)
	if len(g.inside) == 0 && g.empty != nil {
		close(g.empty)
		g.empty = nil
	}
}

// Open lets calls in again.
func (g *Gate) Open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = nil
}

// Close lets nobody in any more, cancels those inside with cause, and waits until
// they have left or ctx ends; it returns the cause of ctx then.
func (g *Gate) Close(ctx context.Context, cause error) error {
	empty := g.close(cause)
	if empty == nil {
		return nil
	}
	select {
	case <-empty:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (g *Gate) close(cause error) <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = cause
	if len(g.inside) == 0 {
		return nil
	}
	for c := range g.inside {
		c.cancel(cause)
	}
	if g.empty == nil {
		g.empty = make(chan struct{})
	}
	return g.empty
}
