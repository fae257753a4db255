package layered

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/layered/internal/fifo"
)

// WithLock runs action while one key is locked: calls with equal namespace and key
// run one at a time, others concurrently. It is not reentrant: a call inside of the
// action for a layer that the action holds is refused at once, whatever its timeout,
// if its ctx is, or descends from, the action's. With another ctx it waits for itself.
//
// The result carries the input, the state reached and what every layer came to, also
// beside an error. An error of a callback comes back as it is, and first, when
// giving the layers back failed too. Otherwise errors are
//
//   - [lockfx.ErrConfig]: all faults of the options; nothing ran
//   - a [TimeoutError]: the time set by [WithTimeout] is over
//   - a [LayerError]: a layer failed, or [ErrLockUnavailable], or the wait for it was
//     ended by what comes next
//   - a [lockfx.NotAcquiredError] whose Nested is true: the call would wait for the
//     one around it
//   - ctx.Err() and the cause, both matched, when ctx ended; or [lockfx.ErrDisposed]
//     since the Locker was closed
//   - a [LostError]: the flock or the poll layer was lost meanwhile; the action's
//     context has ended with it, unless that turned out when it returned
//
// Whatever ends a callback, be it a panic or runtime.Goexit, gives everything back.
func WithLock[I, T any](
	ctx context.Context, in I, action func(ctx context.Context, call Call[I]) (T, error), opts ...Option,
) (Result[I, T], error) {
	res := Result[I, T]{Call: Call[I]{Input: in}}
	s := newSettings(opts)
	if action == nil {
		s.fault("layered.WithLock", "the action must not be nil")
	}
	c, err := finish(s, in)
	if err != nil {
		return res, err
	}
	h := newHold(s, &res.Lock)

	if ctx.Err() != nil {
		return res, refused(s.key, endOf(ctx))
	}
	ctx, visit, err := s.locker.enter(ctx)
	if err != nil {
		return res, refused(s.key, err)
	}
	defer visit.leave()

	pass, err := c.check(ctx, &res.Call, StatePredicateBefore)
	if pass {
		pass, err = underLock(ctx, h, visit, c, action, &res)
	}
	if !pass && err == nil && res.State != StateTimeout && c.onCheckFailed != nil {
		err = c.onCheckFailed(ctx, res.Call)
	}
	return res, err
}

// underLock acquires, checks again and acts, and gives back whatever it got. It
// reports whether the action ran.
func underLock[I, T any](
	ctx context.Context, h *hold, visit *visit, c callbacks[I],
	action func(context.Context, Call[I]) (T, error), res *Result[I, T],
) (ran bool, err error) {
	h.lost = visit.cancel // after a loss no callback runs that could miss ctx
	defer func() { err = h.releaseAfter(err) }()

	if err := h.enter(ctx, visit); err != nil {
		if err == errTimeout { //nolint:errorlint // made for this comparison
			res.State = StateTimeout
			err = nil
		}
		return false, err
	}
	ctx = h.around(ctx)
	if pass, err := c.check(ctx, &res.Call, StatePredicateAfter); !pass {
		return false, err
	}
	if ctx.Err() != nil {
		return false, refused(h.name.key, visit.ended(ctx))
	}
	res.State = StateExecuted
	res.Value, err = action(ctx, res.Call)
	return true, err
}

// enter acquires all layers within the time to wait.
func (h *hold) enter(ctx context.Context, visit *visit) error {
	start := time.Now()
	wait, once := ctx, false
	switch {
	case h.s.onTimeout == timeoutNone:
	case h.s.timeout == 0:
		once = true
	default:
		var stop context.CancelFunc
		wait, stop = context.WithTimeoutCause(ctx, h.s.timeout, errTimeout)
		defer stop()
	}
	if err := visit.wait(true); err != nil {
		return refused(h.name.key, err)
	}
	layer, err := h.acquire(wait, once)
	h.info.Waited = time.Since(start)
	closed := visit.wait(false)
	switch {
	case err == nil && closed != nil:
		return refused(h.name.key, closed)
	case err == nil && ctx.Err() != nil:
		return refused(h.name.key, visit.ended(ctx))
	case err == nil:
		return nil
	case errors.Is(err, errNested):
		return &lockfx.NotAcquiredError{Key: h.name.key, Self: true, Nested: true}
	case endedBy(ctx, err):
		return &LayerError{"acquire", layer, h.name.key, visit.ended(ctx)}
	case !errors.Is(err, fifo.ErrBusy):
		return &LayerError{"acquire", layer, h.name.key, err}
	case h.s.onTimeout == timeoutSucceeds:
		return errTimeout
	}
	return &TimeoutError{layer, h.name.key, h.info.Waited}
}

func refused(key string, err error) error { return fmt.Errorf("acquire %q: %w", key, err) }

func (c callbacks[I]) check(ctx context.Context, call *Call[I], state State) (bool, error) {
	call.State = state
	if c.predicate == nil {
		return true, nil
	}
	pass, err := c.predicate(ctx, *call)
	return pass && err == nil, err
}
