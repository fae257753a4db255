package lifecycle

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockfx/lockfx"
)

// Hold is one acquisition. It is a [lockfx.Holder].
type Hold struct {
	m        *Machine
	token    lockfx.Token // set before the hold is published
	since    time.Time    // when the request left
	state    atomic.Uint32
	running  bool // a run owns this hold, and alone releases it
	deadline atomic.Pointer[time.Time]

	first   time.Time       // the first deadline
	base    context.Context // carries the values of the acquiring context, and never ends
	request request         // the context of the request; that of the body descends from the one in it
	inside  runContext      // of the body; here it costs no allocation
	terms   Terms

	// Guarded by m.mu.
	cancel    context.CancelCauseFunc // ends the request, and then the body
	onBeat    func()                  // renew, bound once
	beat      lockfx.Timer            // the next heartbeat
	expiry    lockfx.Timer            // declares the loss at the deadline
	renewal   *renewal                // not nil while one is under way
	confirmed time.Time               // when the store last granted or renewed
	failure   error                   // of the store since then: the last one
	failures  int                     // renewals that failed in a row
	abandoned bool                    // something outlives its time under the hold: no more heartbeats
	left      *sync.WaitGroup         // what the body left running, or nil
	releasing bool                    // a release has begun
	loss      *lockfx.LostError
	onLost    []func(*lockfx.LostError)
}

var _ lockfx.Holder = (*Hold)(nil)

// Key returns the key that the lease is on.
func (h *Hold) Key() string { return h.m.cfg.Key }

// State returns the state of this acquisition.
func (h *Hold) State() lockfx.State { return lockfx.State(h.state.Load()) }

// Held reports whether the lease can still be trusted.
func (h *Hold) Held() bool {
	return h.State() == lockfx.StateHeld && !passed(*h.deadline.Load(), h.m.cfg.Clock.Now())
}

// Token returns the fencing token, or 0 once the lease is not held.
func (h *Hold) Token() lockfx.Token {
	if !h.Held() {
		return 0
	}
	return h.token
}

// Deadline returns the instant from which Held is false.
func (h *Hold) Deadline() time.Time { return *h.deadline.Load() }

// Failure returns the last failure to renew since the store confirmed the lease, or nil.
func (h *Hold) Failure() error {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	return h.failure
}

// OnLost makes f be called when the lease is lost, on a goroutine of its own; at once if
// it was lost before. It waits for no other callback.
func (h *Hold) OnLost(f func(*lockfx.LostError)) {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	if h.loss != nil {
		go f(h.loss)
		return
	}
	h.onLost = append(h.onLost, f)
}

// Leave says that the body returns though work goes on. The lease is not renewed any more,
// and released when that has ended. It may be called by the body alone.
func (h *Hold) Leave(work *sync.WaitGroup) {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	h.left = work
	h.abandon()
}

// abandon ends the heartbeat. m.mu is held.
func (h *Hold) abandon() {
	h.abandoned = true
	if h.beat != nil {
		h.beat.Stop()
		h.beat = nil
	}
}

// begun reports whether the acquisition got as far as asking for the lock.
func (h *Hold) begun() bool { return h.deadline.Load() != nil }

// armExpiry arms the timer that declares the loss, and reports whether there is
// one. m.mu is held.
func (h *Hold) armExpiry(now time.Time) bool {
	h.expiry = h.m.after(h.Deadline().Sub(now), h.expire)
	return h.expiry != nil
}

// expire is the callback of the expiry timer. The deadline may have moved since
// it was armed, so it looks again.
func (h *Hold) expire() {
	m := h.m
	m.mu.Lock()
	defer m.unlock()
	h.expiry = nil
	now := m.cfg.Clock.Now()
	switch {
	case m.pending == h && h.State() == lockfx.StateAcquiring:
		h.cancel(m.tooLate)
	case h.State() != lockfx.StateHeld:
	case passed(h.Deadline(), now):
		h.expired()
	case !h.armExpiry(now):
		h.lose(lockfx.ReasonTimerUnarmable, nil)
	}
}

// expired declares the loss at the deadline. m.mu is held.
func (h *Hold) expired() {
	m := h.m
	switch end, limited := h.maxHoldEnd(); {
	case h.abandoned && m.disposed:
		h.lose(lockfx.ReasonDisposed, nil)
	case limited && !h.Deadline().Before(end):
		h.lose(lockfx.ReasonMaxHold, nil)
	case h.failure == nil && h.renewal != nil:
		h.lose(lockfx.ReasonExpired, m.storeError("renew", errNoAnswer))
	default: // a process that stood still has asked nothing, so that the store is not to blame
		h.lose(lockfx.ReasonExpired, h.failure)
	}
}

// disarm stops both timers. m.mu is held.
func (h *Hold) disarm() {
	if h.beat != nil {
		h.beat.Stop()
	}
	if h.expiry != nil {
		h.expiry.Stop()
	}
	h.beat, h.expiry = nil, nil
}

// lose is the one way from Held to Lost. cause is the failure of the store that led to
// it, or nil. m.mu is held; m.unlock calls OnLost.
func (h *Hold) lose(reason lockfx.Reason, cause error) {
	m := h.m
	m.move(h, lockfx.StateLost)
	h.disarm()
	h.loss = &lockfx.LostError{Key: m.cfg.Key, Token: h.token, Reason: reason, Err: cause, At: m.cfg.Clock.Now()}
	if cause != nil {
		h.loss.SilentSince = h.confirmed
	}
	h.cancel(h.loss)
	for _, f := range h.onLost {
		go f(h.loss)
	}
	if h.renewal != nil {
		h.renewal.cancel(h.loss)
	}
	m.announce(h, lockfx.Event{Kind: lockfx.EventLost, Reason: reason, Err: cause, SilentSince: h.loss.SilentSince})
}

// outcomeUnknown reports whether the store may still hold the lost lease.
func outcomeUnknown(reason lockfx.Reason) bool {
	return reason != lockfx.ReasonHeartbeatFailed
}
