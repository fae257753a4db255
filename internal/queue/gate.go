package queue

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/lockfx/lockfx"
)

// gate is the gate of one request. It spares the store requests and decides nothing:
// whoever holds it may have lost its lease without knowing. So a request waits there for
// as long as a lease in the way may last, and then asks the store without having passed.
type gate struct {
	enter    func(ctx context.Context, limit time.Duration) (leave func() error, note string, err error)
	ttl      time.Duration
	patience time.Duration // of the next wait; 0 is one attempt
	leave    func() error  // nil until it was passed
	note     string
}

func (r *Request) gate() gate { return gate{enter: r.Gate, ttl: r.TTL} }

// ahead reports whether there is a gate that was not passed.
func (g *gate) ahead() bool { return g.enter != nil && g.leave == nil }

// pass passes the gate, or returns nil as well when another has held it for long enough.
// An error is that of the gate, or says that ctx ended first.
func (g *gate) pass(ctx context.Context) error {
	if !g.ahead() {
		return nil
	}
	limit := g.patience
	within := limit
	if limit == 0 { // an attempt that is not answered does not last for ever
		within = g.ttl
	}
	bounded, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	leave, note, err := g.enter(bounded, limit)
	switch held := errors.Is(err, lockfx.ErrNotAcquired); {
	case err == nil:
		g.leave, g.note = leave, note
		return nil
	case ctx.Err() != nil, !held && bounded.Err() == nil:
		return err
	case limit > 0: // a gate that does not wait is waited for here
		<-bounded.Done()
		if ctx.Err() != nil {
			return err
		}
	}
	g.note = "not passed: " + err.Error()
	return nil
}

// refused sets how long to wait at the gate now that the store has refused, since a
// lease is in the way that can last for left, if the store knows.
func (g *gate) refused(left time.Duration) {
	if left <= 0 {
		left = g.ttl
	}
	g.patience = min(max(left, 2*jitter), longestSleep) + rand.N(jitter)
}

// leaveAfter leaves the gate after run, however that ends, if it was passed.
func (g *gate) leaveAfter(run func() error) (err error) {
	defer func() {
		if g.leave == nil {
			return
		}
		if left := g.leave(); left != nil {
			err = errors.Join(err, left)
		}
	}()
	return run()
}
