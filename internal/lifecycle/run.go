package lifecycle

import (
	"context"
	"errors"

	"github.com/lockfx/lockfx"
)

// Run acquires, calls body and releases, also if body panics or ends its
// goroutine. body's context ends with ctx, with the loss of the lease (its cause
// is then a [lockfx.LostError]) and with Dispose (cause [lockfx.ErrDisposed]); it
// carries the token.
//
// If nothing else went wrong the error is body's own. Otherwise the errors are
// joined, body's first. A body that returned nil although its lease was lost gets
// the LostError. When the lease was not to be had, the error is a
// [lockfx.NotAcquiredError] and body was not called.
func (m *Machine) Run(ctx context.Context, body func(context.Context, *Hold) error) error {
	return m.RunOn(ctx, m.cfg.Terms, body)
}

// RunOn is Run on other terms than those of the configuration.
func (m *Machine) RunOn(ctx context.Context, terms Terms, body func(context.Context, *Hold) error) (err error) {
	h := m.newHold(ctx)
	defer h.cancel(nil)
	h.running, h.terms = true, terms
	answer, err := m.acquire(ctx, h)
	switch {
	case !h.begun() && errors.Is(err, lockfx.ErrNotIdle):
		return &lockfx.NotAcquiredError{Key: m.cfg.Key, Self: true}
	case err != nil:
		return err
	case h.token == 0:
		return &lockfx.NotAcquiredError{Key: m.cfg.Key, HeldBy: answer.HeldBy, RetryAfter: answer.RetryAfter}
	}
	defer func() {
		h.cancel(nil) // what the body left running stops before the lease is given back
		err = m.releaseAfter(h, err)
	}()
	m.deliver()
	h.inside = runContext{lockfx.WithToken(h.request.Context, m.cfg.Key, h.token), h}
	return body(&h.inside, h)
}

// runContext is the context of a body. It knows the hold that the body runs under.
type runContext struct {
	context.Context
	hold *Hold
}

type holdKey struct{ of *Machine }

func (c *runContext) Value(key any) any {
	if key == (holdKey{c.hold.m}) {
		return c.hold
	}
	return c.Context.Value(key)
}

// Inside reports whether ctx is, or descends from, that of a body that runs under m and
// has not ended.
func (m *Machine) Inside(ctx context.Context) bool {
	h, ok := ctx.Value(holdKey{m}).(*Hold)
	return ok && h.State() != lockfx.StateReleased
}

// releaseAfter releases after the body, and joins what went wrong. What the body left
// running is not waited for here.
func (m *Machine) releaseAfter(h *Hold, bodyErr error) error {
	if h.left != nil {
		m.mu.Lock()
		loss := h.loss
		m.mu.Unlock()
		go func() {
			h.left.Wait()
			_, _ = m.release(h.base, h) // the event says how it went
		}()
		return withLoss(bodyErr, loss)
	}
	ok, err := m.release(h.base, h)
	if h.loss != nil {
		return withLoss(bodyErr, h.loss)
	}
	if err == nil && !ok {
		err = m.unknownToken(h)
	}
	return join(bodyErr, err)
}

// withLoss adds a loss, which may be nil, to the error of a body.
func withLoss(bodyErr error, loss *lockfx.LostError) error {
	if loss == nil || errors.Is(bodyErr, loss) {
		return bodyErr
	}
	return join(bodyErr, loss)
}

// join is errors.Join that returns a lone error as it is.
func join(first, second error) error {
	switch {
	case first == nil:
		return second
	case second == nil:
		return first
	}
	return errors.Join(first, second)
}
