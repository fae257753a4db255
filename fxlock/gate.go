package fxlock

import (
	"context"
	"fmt"
	"time"
)

// Gate stands in front of the store: a run passes it before it asks, and only the
// first of those who wait for one *Lock does. Package layeredfx has one that lets
// one contender of a host through.
type Gate interface {
	// Enter passes the gate for key. It waits for at most limit: 0 is one attempt,
	// and a negative limit waits until ctx ends. When it does not pass, err should be
	// a [lockfx.NotAcquiredError], or match [lockfx.ErrTimeout]. leave is called
	// once, when the run is over; note is added to the run's log lines and events.
	Enter(ctx context.Context, key string, limit time.Duration) (leave func() error, note string, err error)
}

// WithGate puts a gate in front of the store. There is none by default.
func WithGate(gate Gate) LockOrRunOption {
	text := fmt.Sprintf("fxlock.WithGate(%T)", gate)
	return bothOption(text, func(r *runSettings) {
		if isNil(gate) {
			r.fault(text, "must not be nil")
		}
		r.gate.set(gateOf{gate})
	})
}

// gateOf is a gate, or none.
type gateOf struct{ Gate }

func (g gateOf) bind(key string) func(context.Context, time.Duration) (func() error, string, error) {
	if g.Gate == nil {
		return nil
	}
	return func(ctx context.Context, limit time.Duration) (func() error, string, error) {
		return g.Enter(ctx, key, limit)
	}
}
