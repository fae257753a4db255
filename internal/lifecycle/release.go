package lifecycle

import (
	"context"
	"fmt"
	"time"

	"github.com/lockfx/lockfx"
)

// Release gives the lease back. It returns true only if the store confirmed it
// with a strict true, and ends in Released whatever the store answered. It stops
// the heartbeat first and waits for a renewal under way, so that nothing renews a
// released key. It keeps the values of ctx but not its end, and has a bound of
// its own: a cancelled request still releases. A lease whose MinHold is not over is
// set to the rest of it instead, and not renewed any more.
//
// When nothing is held it returns (false, nil). After a loss that the store told
// us of it does not call the store; after any other loss it does, on a best
// effort, and keeps quiet about an error. A lease that belongs to a run is not
// released under its body: the error then matches [lockfx.ErrNotIdle].
func (m *Machine) Release(ctx context.Context) (bool, error) {
	m.mu.Lock()
	h := m.cur.Load()
	if h != nil && h.running {
		m.mu.Unlock()
		return false, fmt.Errorf("release %q: %w: a run holds the lease until its body returns", m.cfg.Key, lockfx.ErrNotIdle)
	}
	m.mu.Unlock()
	if h == nil {
		return false, nil
	}
	return m.release(context.WithoutCancel(ctx), h)
}

// release is Release for a ctx that does not end.
func (m *Machine) release(ctx context.Context, h *Hold) (ok bool, err error) {
	underWay, ask, first := m.beginRelease(h)
	if !first {
		return false, nil
	}
	bounded, cancel := m.detached(ctx)
	defer cancel()
	err = errExited
	var kept time.Duration
	defer func() { // also if the store ended this goroutine
		switch {
		case h.loss != nil: // its holder has heard of the loss already
			err = nil
		case err != nil:
			err = m.storeError("release", err)
		}
		if !ok {
			kept = 0
		}
		m.endRelease(h, kept, ok, err)
	}()
	switch {
	case !joined(bounded, underWay):
		return false, fmt.Errorf("%w: %w", errStillRenewal, m.tooSlow)
	case !ask:
		return false, nil
	}
	if rest := h.owed(); rest > 0 {
		kept, ok, err = m.storeKeep(bounded, h.token, rest)
		return ok, err
	}
	return m.storeRelease(bounded, h.token)
}

// beginRelease stops everything that could renew, and returns a channel that closes at
// the end of the renewal that is under way, if there is one. It reports whether the store
// is to be asked, and whether this call is the one that releases. A loss that it notices is announced when the release is done: OnLost may wait for that.
func (m *Machine) beginRelease(h *Hold) (underWay <-chan struct{}, ask, first bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if h.releasing {
		return nil, false, false
	}
	h.releasing, m.inUse = true, true
	if h.State() == lockfx.StateHeld && passed(h.Deadline(), m.cfg.Clock.Now()) {
		h.expired()
	}
	if h.State() == lockfx.StateLost {
		return h.renewal.end(), outcomeUnknown(h.loss.Reason), true
	}
	m.move(h, lockfx.StateReleasing)
	h.disarm()
	if h.renewal != nil {
		h.renewal.cancel(errReleasing)
	}
	return h.renewal.end(), true, true
}

// unknownToken says that the store did not know the lease that was given back.
func (m *Machine) unknownToken(h *Hold) error {
	return fmt.Errorf("release %q: %w: the store no longer knows token %d", m.cfg.Key, lockfx.ErrLost, h.token)
}

// joined waits for the renewal under way. No other starts: the hold is not Held.
func joined(ctx context.Context, underWay <-chan struct{}) bool {
	if underWay == nil {
		return true
	}
	select {
	case <-underWay:
		return true
	case <-ctx.Done():
		return false
	}
}

// endRelease ends in Released and lets go of the hold. kept is for how long the key
// is kept from everybody all the same.
func (m *Machine) endRelease(h *Hold, kept time.Duration, ok bool, err error) {
	m.mu.Lock()
	defer m.unlock()
	m.move(h, lockfx.StateReleased)
	reason := lockfx.ReasonReleased
	switch {
	case h.loss != nil:
		reason = h.loss.Reason
	case !ok && err == nil:
		err = m.unknownToken(h)
	}
	m.announce(h, lockfx.Event{Kind: lockfx.EventReleased, Reason: reason, KeptFor: kept, Err: err})
	m.cur.Store(nil)
	m.endUse()
}
