package lifecycle

import (
	"context"
	"errors"
	"fmt"

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
func (m *Machine) Run(ctx context.Context, body func(context.Context, *Hold) error) (err error) {
	h, refusal, err := m.acquire(ctx, true)
	switch {
	case errors.Is(err, lockfx.ErrNotIdle):
		return &lockfx.NotAcquiredError{Key: m.cfg.Key, Self: true}
	case err != nil:
		return err
	case h == nil:
		return &lockfx.NotAcquiredError{Key: m.cfg.Key, HeldBy: refusal.HeldBy, RetryAfter: refusal.RetryAfter}
	}
	run, cancel := context.WithCancelCause(lockfx.WithToken(ctx, h.token))
	defer func() {
		cancel(nil) // what the body left running stops before the lease is given back
		err = m.finish(ctx, h, err)
	}()
	m.attach(h, cancel)
	return body(run, h)
}

// attach lets a loss or a disposal end the body's context, from now on or at once.
func (m *Machine) attach(h *Hold, cancel context.CancelCauseFunc) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h.cancelRun = cancel
	if h.loss != nil {
		cancel(h.loss)
	}
	if m.disposed {
		cancel(lockfx.ErrDisposed)
	}
}

// finish releases after the body, and joins what went wrong.
func (m *Machine) finish(ctx context.Context, h *Hold, bodyErr error) error {
	ok, err := m.release(ctx, h)
	if h.loss != nil {
		if errors.Is(bodyErr, lockfx.ErrLost) {
			return bodyErr
		}
		return join(bodyErr, h.loss)
	}
	if err == nil && !ok {
		err = fmt.Errorf("release %q: %w: the store no longer knows token %d", m.cfg.Key, lockfx.ErrLost, h.token)
	}
	return join(bodyErr, err)
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
