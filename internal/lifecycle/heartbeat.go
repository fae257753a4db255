package lifecycle

import (
	"context"
	"fmt"
	"time"

	"github.com/lockfx/lockfx"
)

// Tick is one heartbeat, as the timer makes it: it renews the lease and reports
// whether it is still held. When the lease is lost by it, the error is a
// [lockfx.LostError]; with RenewRetry a renewal that failed is (true, error).
// Renewals never overlap: a Tick during another waits for it, as long as ctx
// allows. When nothing is held, or after Dispose, it returns (false, nil) and
// does not touch the store.
func (m *Machine) Tick(ctx context.Context) (bool, error) {
	h := m.cur.Load()
	if h == nil || m.Disposed() {
		return false, nil
	}
	if ctx.Err() != nil {
		return h.Held(), fmt.Errorf("renew %q: %w", m.cfg.Key, causeOf(ctx))
	}
	return h.tick(ctx)
}

// renew is the callback of the beat timer.
func (h *Hold) renew() {
	_, _ = h.tick(h.base) // what goes wrong is told as an event
}

// renewal is one call of the store's Renew, and its context.
type renewal struct {
	request
	cancel context.CancelCauseFunc
	asked  time.Time     // when it left: the renewed lease counts from here
	ended  chan struct{} // made by who waits for the end, and closed then
}

// end returns a channel that closes at the end of r, or nil if there is no r. m.mu is held.
func (r *renewal) end() <-chan struct{} {
	if r == nil {
		return nil
	}
	if r.ended == nil {
		r.ended = make(chan struct{})
	}
	return r.ended
}

func (h *Hold) tick(ctx context.Context) (held bool, err error) {
	var r renewal
	r.Context, r.cancel = context.WithCancelCause(ctx)
	defer r.cancel(nil)
	begun, underWay, err := h.beginRenewal(&r)
	for underWay != nil {
		select {
		case <-underWay:
			begun, underWay, err = h.beginRenewal(&r)
		case <-ctx.Done():
			return h.Held(), fmt.Errorf("renew %q: %w", h.m.cfg.Key, causeOf(ctx))
		}
	}
	if !begun {
		return false, err
	}
	if h.m.cfg.RenewRetry { // an attempt that hangs must leave time for another
		if limit := h.m.after(h.m.cfg.Heartbeat, func() { r.cancel(h.m.noAnswer) }); limit != nil {
			defer limit.Stop()
		}
	}
	renewed, failure := false, errExited
	defer func() { held, err = h.endRenewal(renewed, failure) }() // also if the store ended this goroutine
	renewed, failure = h.m.storeRenew(&r, h.token, h.lease())
	return held, err
}

// beginRenewal makes r the renewal that is under way, and reports whether there is
// something to renew. Otherwise it returns a channel that closes at the end of the renewal
// that is under way already; or the loss, if there is one.
func (h *Hold) beginRenewal(r *renewal) (begun bool, underWay <-chan struct{}, loss error) {
	m := h.m
	m.mu.Lock()
	defer m.unlock()
	if h.State() != lockfx.StateHeld || h.abandoned {
		return false, nil, h.lossError()
	}
	if h.renewal != nil {
		return false, h.renewal.end(), nil
	}
	now := m.cfg.Clock.Now()
	if passed(h.Deadline(), now) { // paused or suspended: the lease may be another's by now
		h.expired()
		return false, nil, h.lossError()
	}
	if h.beat != nil {
		h.beat.Stop()
		h.beat = nil
	}
	deadline := h.Deadline()
	if retry := now.Add(m.cfg.Heartbeat); m.cfg.RenewRetry && retry.Before(deadline) {
		deadline = retry
	}
	r.deadline, r.asked = m.onSystemClock(deadline, now), now
	h.renewal = r
	return true, nil, nil
}

// endRenewal judges the answer to the renewal that is under way.
func (h *Hold) endRenewal(renewed bool, err error) (bool, error) {
	m := h.m
	m.mu.Lock()
	defer m.unlock()
	r := h.renewal
	if h.renewal = nil; r.ended != nil {
		close(r.ended)
	}
	if h.State() != lockfx.StateHeld {
		return false, h.lossError()
	}
	next, now := r.asked.Add(m.cfg.Heartbeat), m.cfg.Clock.Now()
	late := passed(h.Deadline(), now)
	if late && err == nil {
		err = errNoAnswer
	}
	if err != nil {
		err = m.storeError("renew", err)
		h.failure = err
	}
	switch {
	case late:
		h.expired()
	case err != nil && m.cfg.RenewRetry:
		m.announce(h, lockfx.Event{Kind: lockfx.EventRenewFailed, Err: err, SilentSince: h.confirmed})
		next = now.Add(backOff(m.cfg.Heartbeat, h.failures))
		h.failures++
		if h.beatOn(next) {
			return true, err
		}
	case err != nil:
		h.lose(lockfx.ReasonStoreError, err)
	case !renewed:
		h.lose(lockfx.ReasonHeartbeatFailed, nil)
	default:
		h.failures, h.failure, h.confirmed = 0, nil, now
		deadline := h.deadlineFrom(r.asked)
		h.deadline.Store(&deadline)
		if passed(deadline, now) {
			h.expired()
		} else if h.beatOn(next) {
			return true, nil
		}
	}
	return false, h.lossError()
}

// beatOn arms the next heartbeat. It loses the lease, and returns false, if the
// clock has no timer. m.mu is held.
func (h *Hold) beatOn(at time.Time) bool {
	if h.armBeat(at) {
		return true
	}
	h.lose(lockfx.ReasonTimerUnarmable, nil)
	return false
}

// armBeat arms the timer of the next heartbeat, and reports whether there is one.
// m.mu is held.
func (h *Hold) armBeat(at time.Time) bool {
	h.beat = h.m.after(max(at.Sub(h.m.cfg.Clock.Now()), 0), h.onBeat)
	return h.beat != nil
}

// lossError returns the loss as an error, or nil. m.mu is held.
func (h *Hold) lossError() error {
	if h.loss == nil {
		return nil
	}
	return h.loss
}

// backOff returns how long to wait before the next attempt to renew: an eighth of
// the heartbeat, doubled for each failure in a row, up to a whole one.
func backOff(heartbeat time.Duration, failures int) time.Duration {
	return max(heartbeat>>max(3-failures, 0), 1)
}
