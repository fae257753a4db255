package fxlock

import (
	"context"
	"fmt"
	"time"

	"github.com/lockfx/lockfx/fxlock/internal/graph"
)

// Gate stands in front of the store: a run passes it before it asks, and only the
// first of those who wait for one *Lock does. The function ThroughHost of package
// layeredfx makes one that lets one contender of a host through.
//
// If it has a method Check() error, that is asked when the option is made.
type Gate interface {
	// Enter passes the gate for key. A limit of 0 is one attempt. Otherwise it waits
	// until ctx ends, which is within limit, unless limit is negative: then there is
	// none. ctx bounds Enter, and not what follows.
	//
	// When it does not pass, err should be a [lockfx.NotAcquiredError] that says who is
	// in the way. When it does, leave is called once, when the run is over, and its
	// error is joined to that of the run. note is added to the run's log lines and
	// events.
	Enter(ctx context.Context, key string, limit time.Duration) (leave func() error, note string, err error)
}

// WithGate puts a gate in front of the store. There is none by default.
func WithGate(gate Gate) LockOrRunOption {
	text := fmt.Sprintf("fxlock.WithGate(%T)", gate)
	if s, ok := gate.(fmt.Stringer); ok && !graph.IsNil(gate) {
		text = "fxlock.WithGate(" + s.String() + ")"
	}
	return bothOption(text, func(r *runSettings) {
		if graph.IsNil(gate) {
			r.fault(text, "must not be nil")
			return
		}
		if c, ok := gate.(interface{ Check() error }); ok {
			if err := c.Check(); err != nil {
				r.faults = append(r.faults, faultOf(text, err))
			}
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
