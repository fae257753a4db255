package lifecycle

import (
	"context"
	"errors"
	"fmt"

	"github.com/lockfx/lockfx"
)

// Acquire asks the store once. It returns true only for a grant that is exactly
// one, whose token exceeds the last one accepted, and whose local deadline has
// not passed. Anything else leaves the machine Idle: a refusal is (false, nil);
// an outage, a malformed or regressed grant, a panic of the store or a dead ctx
// is (false, error). A lease that was given but is not accepted is given back.
//
// ctx bounds the acquisition, not the hold. When the lock is not Idle or
// Released, the error matches [lockfx.ErrNotIdle] and nothing changes.
func (m *Machine) Acquire(ctx context.Context) (bool, error) {
	h := m.newHold(ctx)
	defer h.cancel(nil)
	_, err := m.acquire(ctx, h)
	m.deliver()
	return err == nil && h.token != 0, err
}

func (m *Machine) newHold(ctx context.Context) *Hold {
	h := &Hold{m: m, base: context.WithoutCancel(ctx), terms: m.cfg.Terms}
	h.request.Context, h.cancel = context.WithCancelCause(ctx)
	return h
}

// acquire makes h the hold, or returns the store's refusal or an error. ctx is that of
// newHold. Its caller delivers the events, once it can deal with a callback that
// ends the goroutine.
func (m *Machine) acquire(ctx context.Context, h *Hold) (lockfx.Grant, error) {
	armed, err := m.begin(h)
	if err != nil {
		return lockfx.Grant{}, err
	}

	settled := false
	defer func() {
		if !settled { // the store ended this goroutine, while it granted or took back
			m.endFailed(h, lockfx.ReasonStoreError, m.storeError("acquire", errExited))
		}
	}()
	var grant lockfx.Grant
	reason := lockfx.ReasonNone
	switch {
	case ctx.Err() != nil: // a dead context never reaches the store
		err = m.acquireError(causeOf(ctx))
	case !armed:
		reason, err = lockfx.ReasonTimerUnarmable, m.acquireError(errNoTimer)
	default:
		stop := m.bound(h)
		grant, err = m.storeAcquire(&h.request, h.lease())
		stop()
		reason, err = m.accept(ctx, h, grant, err)
	}
	if h.token != 0 {
		settled = true
		return grant, nil
	}
	if grant.OK && grant.Token.Valid() {
		m.giveBack(h, grant.Token)
	}
	settled = true
	if err == nil {
		m.endRefused(h, grant)
		return grant, nil
	}
	m.endFailed(h, reason, err)
	return lockfx.Grant{}, err
}

// begin moves to Acquiring and arms the expiry timer: the lease is counted from
// here, before the request leaves. It reports whether the timer was armed.
func (m *Machine) begin(h *Hold) (armed bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch state := m.State(); {
	case m.disposed:
		return false, m.acquireError(lockfx.ErrDisposed)
	case !acquirable(state):
		return false, m.acquireError(fmt.Errorf("%w: %v", lockfx.ErrNotIdle, state))
	}
	m.inUse, m.pending = true, h
	m.move(h, lockfx.StateAcquiring)
	h.since = m.cfg.Clock.Now()
	h.first = h.deadlineFrom(h.since)
	h.deadline.Store(&h.first)
	h.request.deadline = m.onSystemClock(h.first, h.since)
	return h.armExpiry(h.since), nil
}

// accept judges the store's answer and, if it is a grant in every respect, makes
// h the hold. Otherwise it says why not; a plain refusal is no error.
// The context that the store had ends with ctx, the disposal or the deadline, and those
// say more than the error that they provoked.
func (m *Machine) accept(ctx context.Context, h *Hold, grant lockfx.Grant, err error) (lockfx.Reason, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	granted, reason, fault := m.judge(grant, err)
	if granted || err != nil {
		switch {
		case m.disposed:
			return lockfx.ReasonDisposed, m.acquireError(lockfx.ErrDisposed)
		case ctx.Err() != nil:
			return lockfx.ReasonNone, m.acquireError(causeOf(ctx))
		case h.request.Err() != nil:
			return h.whyEnded(&h.request)
		case granted && passed(h.Deadline(), m.cfg.Clock.Now()):
			return h.tooLate(m.tooLate)
		}
	}
	if !granted {
		return reason, fault
	}
	h.onBeat = h.renew
	if !h.armBeat(h.since.Add(m.cfg.Heartbeat)) {
		return lockfx.ReasonTimerUnarmable, m.acquireError(errNoTimer)
	}
	h.token, h.confirmed = grant.Token, m.cfg.Clock.Now()
	m.last, m.pending = grant.Token, nil
	m.move(h, lockfx.StateHeld)
	m.cur.Store(h)
	if !h.running {
		m.endUse()
	}
	m.announce(h, lockfx.Event{Kind: lockfx.EventAcquired})
	return lockfx.ReasonNone, nil
}

// whyEnded says why call ended: by the local deadline, or because nobody waits for it any
// more, which is no fault of the lease.
func (h *Hold) whyEnded(call context.Context) (lockfx.Reason, error) {
	cause := causeOf(call)
	if errors.Is(cause, h.m.tooLate) {
		return h.tooLate(cause)
	}
	return lockfx.ReasonNone, h.m.storeError("acquire", cause)
}

// tooLate says that there was no answer before the first deadline of h: that of the lease,
// of which the store had all, or that of the longest hold.
func (h *Hold) tooLate(cause error) (lockfx.Reason, error) {
	if end, limited := h.maxHoldEnd(); limited && !h.first.Before(end) {
		return lockfx.ReasonMaxHold, h.m.acquireError(fmt.Errorf("%w: the max hold of %v was over before the store had answered",
			lockfx.ErrTimeout, h.terms.MaxHold))
	}
	return lockfx.ReasonExpired, h.m.storeError("acquire", cause)
}

// judge is the whitelist: only a Grant that is OK, carries a token of 1 or more
// and greater than the last one accepted, and comes without an error, is a grant.
// A refusal is the absence of all of that. m.mu is held.
func (m *Machine) judge(grant lockfx.Grant, err error) (bool, lockfx.Reason, error) {
	switch {
	case err != nil:
		return false, lockfx.ReasonStoreError, m.storeError("acquire", err)
	case !grant.OK && grant.Token == 0:
		return false, lockfx.ReasonNone, nil
	case !grant.OK || !grant.Token.Valid():
		return false, lockfx.ReasonStoreError, m.acquireError(fmt.Errorf("%w: OK is %v and the token is %d",
			lockfx.ErrBadGrant, grant.OK, grant.Token))
	case grant.Token <= m.last:
		return false, lockfx.ReasonFenceRegressed, m.acquireError(fmt.Errorf("%w: got %d after %d",
			lockfx.ErrFenceRegressed, grant.Token, m.last))
	}
	return true, lockfx.ReasonNone, nil
}

// acquireError says why the lock was not acquired.
func (m *Machine) acquireError(err error) error {
	return fmt.Errorf("acquire %q: %w", m.cfg.Key, err)
}

// giveBack releases a lease that was granted but not accepted, on a best effort:
// if it fails, the lease expires.
func (m *Machine) giveBack(h *Hold, token lockfx.Token) {
	bounded, cancel := m.detached(h.base)
	defer cancel()
	_, _ = m.storeRelease(bounded, token) // the caller hears why the grant was not accepted
}

// endRefused ends an acquisition that met another holder.
func (m *Machine) endRefused(h *Hold, grant lockfx.Grant) {
	m.endAttempt(h, lockfx.Event{Kind: lockfx.EventRefused, HeldBy: grant.HeldBy, RetryAfter: grant.RetryAfter})
}

// endFailed ends an acquisition that failed.
func (m *Machine) endFailed(h *Hold, reason lockfx.Reason, err error) {
	m.endAttempt(h, lockfx.Event{Kind: lockfx.EventFailed, Reason: reason, Err: err})
}

func (m *Machine) endAttempt(h *Hold, e lockfx.Event) {
	m.mu.Lock()
	defer m.unlock()
	h.disarm()
	m.pending = nil
	to := lockfx.StateIdle
	if m.disposed {
		to = lockfx.StateReleased
	}
	m.move(h, to)
	if e.Kind != h.terms.Suppress {
		e.Gate = h.terms.Gate
		m.announce(nil, e)
	}
	m.endUse()
}
