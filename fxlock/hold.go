package fxlock

import (
	"context"
	"fmt"
	"time"

	"github.com/lockfx/lockfx/fxlock/internal/faults"
	"github.com/lockfx/lockfx/fxlock/internal/graph"
	"github.com/lockfx/lockfx/internal/queue"
)

// Wait makes a run wait for the lock, for at most limit; 0 is one try, which is the
// default. Callers of one *Lock wait in order, and only the first of them talks to the
// store. If the store can wake it ([lockfx.Watcher]), it asks again when it is woken, when
// the current lease ends, and once a minute; otherwise about once a second.
//
// The limit bounds only the wait, which is over when the body begins. It is independent of
// the ttl ([WithTTL]) and of the limit of one call of the store ([WithCallTimeout]). When
// the limit is reached, the error matches [lockfx.ErrTimeout] and the last obstacle:
// [lockfx.ErrNotAcquired], or [lockfx.ErrStore] if the store could not be reached. If the
// context of the run or the application ends first, the error matches that cause instead of
// ErrTimeout. An outage during the wait is one [lockfx.EventFailed]; the store is then
// asked again at growing intervals.
func Wait(limit time.Duration) RunOption {
	text := "fxlock.Wait(" + limit.String() + ")"
	return newRunOption(text, func(r *runSettings) {
		if limit < 0 {
			r.fault(text, "must not be negative; fxlock.WaitForever has no limit")
			return
		}
		if limit > 0 && limit < time.Millisecond {
			r.fault(text, faults.OfDuration(limit))
			return
		}
		r.wait.set(limit)
	})
}

// WaitForever is [Wait] without a limit: the wait ends with the context of the run, or
// with the stop of the application.
func WaitForever() RunOption {
	return newRunOption("fxlock.WaitForever()", func(r *runSettings) { r.wait.set(queue.Forever) })
}

// MinHold keeps the key held for d from when the run asked for it, even if the body
// returns earlier, and whether it succeeded or failed: the lease is then set to the rest
// of d and not renewed. Without it a short job runs once on each of several hosts whose
// clocks differ, one after the other. d should exceed that difference, and be less than
// the time from one run to the next. If the rest is shorter than the store's shortest
// lease, the key is kept a little longer. Callers that are refused meanwhile see the label
// of the finished run. The requested lease is never shorter than the rest of d, so a run
// whose process dies keeps the key as well: the others then wait for d instead of the ttl.
//
// If the body did not begin, because the run was skipped ([If]) or its scope could not be
// built, the key is released at once.
func MinHold(d time.Duration) RunOption {
	return holdOption("fxlock.MinHold", d, func(r *runSettings) { r.minHold.set(d) })
}

// MaxHold ends a run d after it asked for the lock: the lease is lost with
// [lockfx.ReasonMaxHold], which cancels the body's context, and the key is released when
// the body has returned.
func MaxHold(d time.Duration) RunOption {
	return holdOption("fxlock.MaxHold", d, func(r *runSettings) { r.maxHold.set(d) })
}

func holdOption(name string, d time.Duration, set func(*runSettings)) RunOption {
	text := name + "(" + d.String() + ")"
	return newRunOption(text, func(r *runSettings) {
		if rule := faults.OfDuration(d); rule != "" {
			r.fault(text, rule)
			return
		}
		set(r)
	})
}

// Gate spares the store requests: a run passes it before it asks the store, and of the
// callers that wait for one *Lock only the first one does. It decides nothing. If another
// holds it, a run asks the store without having passed: one that does not wait after an
// attempt, and one that waits after a ttl or half of a shorter limit, and whenever the lease
// in the way may have ended. Function ThroughHost of package layeredfx makes a gate that
// lets one contender of a host through.
//
// If a gate has a method Check() error, it is called when the option is made.
type Gate interface {
	// Enter passes the gate for key. A limit of 0 is one attempt. With a greater limit it waits
	// until ctx ends, which is within limit. ctx bounds only Enter, which must return when it
	// ends.
	//
	// If another holds the gate, err must be a [lockfx.NotAcquiredError] that says who does.
	// Any other error ends the run, unless ctx has ended. If it passes, leave is called once,
	// when the run is over, and its error is joined to that of the run. note is added to the
	// run's log lines and events.
	Enter(ctx context.Context, key string, limit time.Duration) (leave func() error, note string, err error)
}

// WithGate puts a gate in front of the store. There is none by default.
func WithGate(gate Gate) RunOption {
	text := fmt.Sprintf("fxlock.WithGate(%T)", gate)
	if s, ok := gate.(fmt.Stringer); ok && !graph.IsNil(gate) {
		text = "fxlock.WithGate(" + s.String() + ")"
	}
	return newRunOption(text, func(r *runSettings) {
		if graph.IsNil(gate) {
			r.fault(text, "must not be nil")
			return
		}
		if c, ok := gate.(interface{ Check() error }); ok {
			if err := c.Check(); err != nil {
				r.faults = append(r.faults, faults.Of(text, err))
			}
		}
		r.gate.set(gate.Enter)
	})
}
