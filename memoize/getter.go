package memoize

import (
	"context"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// getter computes a value by flights until one of them succeeds.
type getter[T any] struct {
	kept   atomic.Pointer[T] // never nil again once a flight has succeeded
	launch func(fly func())

	mu     sync.Mutex // guards what follows, and the counts of the flight
	fn     func(context.Context) (T, error)
	flight *flight[T] // nil when none is under way
}

// flight is one run of fn.
type flight[T any] struct {
	node
	ctx    context.Context
	cancel context.CancelCauseFunc

	callers   int  // who wait for the outcome
	abandoned bool // all of them have left: nobody may join any more

	done     chan struct{} // closed when what follows is final
	value    T
	err      error
	panicked *PanicError
}

// get returns the value, from a flight if need be.
func (g *getter[T]) get(ctx context.Context) (T, error) {
	within := flightsOf(ctx)
	for {
		if v := g.kept.Load(); v != nil {
			return *v, nil
		}
		if final, v, err := g.share(ctx, within); final {
			return v, err
		}
	}
}

// share waits for a flight, the one under way or a new one, until ctx ends. It is
// final unless the flight was abandoned before this call came, or a value was kept
// meanwhile.
func (g *getter[T]) share(ctx context.Context, within []*node) (final bool, v T, err error) {
	if err := ended(ctx); err != nil {
		return true, v, err
	}
	g.mu.Lock()
	if g.kept.Load() != nil {
		g.mu.Unlock()
		return false, v, nil
	}
	begin := g.flight == nil
	if begin {
		g.flight = newFlight[T](ctx)
	}
	f := g.flight
	stopWaiting, ok := waitFor(within, &f.node)
	if !ok {
		g.mu.Unlock()
		return true, v, ErrReentrant
	}
	defer stopWaiting()
	joined := !f.abandoned
	if joined {
		f.callers++
	}
	g.mu.Unlock()

	if begin {
		g.launch(func() { g.fly(f) })
	}
	select {
	case <-f.done:
		if joined && f.panicked != nil {
			panic(f.panicked)
		}
		return joined, f.value, f.err
	case <-ctx.Done():
		if joined {
			g.leave(f)
		}
		return true, v, ended(ctx)
	}
}

func newFlight[T any](ctx context.Context) *flight[T] {
	f := &flight[T]{done: make(chan struct{})}
	f.ctx, f.cancel = context.WithCancelCause(withFlight(context.WithoutCancel(ctx), &f.node))
	return f
}

// leave takes one caller off f, and cancels f after the last one.
func (g *getter[T]) leave(f *flight[T]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f.callers--
	if f.callers == 0 {
		f.abandoned = true
		f.cancel(ErrAbandoned)
	}
}

// fly runs fn. Whatever way fn ends, the flight is over afterwards: if it neither
// returned nor panicked, it called Goexit.
func (g *getter[T]) fly(f *flight[T]) {
	defer g.land(f)
	defer enter(&f.node)()
	f.err = ErrGoexit
	returned := false
	defer func() {
		if returned {
			return
		}
		if p := recover(); p != nil {
			f.panicked = &PanicError{Value: p, Stack: debug.Stack()}
		}
	}()
	f.value, f.err = g.fn(f.ctx)
	returned = true
}

// land keeps the value of a success and tells those who wait.
func (g *getter[T]) land(f *flight[T]) {
	g.mu.Lock()
	g.flight = nil
	if f.err == nil {
		value := f.value // a copy, so that the flight can be forgotten
		g.kept.Store(&value)
		g.fn = nil // what it refers to is not needed any more
	}
	g.mu.Unlock()
	f.cancel(nil)
	close(f.done)
}
