package lifecycle

import (
	"context"
	"time"

	"github.com/lockfx/lockfx"
)

// Terms are what one run asks for beyond the configuration.
type Terms struct {
	// Within ends the attempt to acquire, and not the hold. Nil bounds nothing.
	Within context.Context
	// Suppress keeps an attempt that ends like this from being announced: the caller
	// tries again and again, and has announced it once.
	Suppress lockfx.EventKind
	// Gate is what a gate in front of the store said. It goes into the events of the attempt and of the hold.
	Gate string
	// MinHold keeps the key from everybody for that long from when it was asked for, even
	// if the body is done earlier: the lease is then set to the rest instead of being
	// released. The lease is never shorter than the rest of MinHold, so that the key is
	// kept if the process dies, too. 0 is none.
	MinHold time.Duration
	// OweLater makes a hold that ends before [Hold.Owe] was called keep nothing.
	OweLater bool
	// MaxHold ends the hold that long after its request left. 0 is no limit.
	MaxHold time.Duration
}

// bound ends the request of h, as long as it is under way, when the terms say so.
// stop must be called.
func (m *Machine) bound(h *Hold) (stop func() bool) {
	within := h.terms.Within
	if within == nil {
		return func() bool { return false }
	}
	return context.AfterFunc(within, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.pending == h {
			h.cancel(context.Cause(within))
		}
	})
}

// deadlineFrom returns the instant from which the lease that was asked for at asked
// is not trusted any more: the end of the lease, or of the longest hold.
func (h *Hold) deadlineFrom(asked time.Time) time.Time {
	deadline := deadlineOf(asked, h.m.cfg.TTL)
	if end, limited := h.maxHoldEnd(); limited && end.Before(deadline) {
		return end
	}
	return deadline
}

// maxHoldEnd returns the instant at which MaxHold is over, if there is a limit.
func (h *Hold) maxHoldEnd() (time.Time, bool) {
	return h.since.Add(h.terms.MaxHold), h.terms.MaxHold > 0
}

// Owe makes MinHold count from now on, if it is to be owed later. It may be called by the
// body alone.
func (h *Hold) Owe() { h.terms.OweLater = false }

// owed returns for how long the key must still be kept from everybody when the hold ends.
func (h *Hold) owed() time.Duration {
	if h.terms.OweLater {
		return 0
	}
	return h.restOfMinHold()
}

func (h *Hold) restOfMinHold() time.Duration {
	if h.terms.MinHold == 0 {
		return 0
	}
	return max(h.terms.MinHold-h.m.cfg.Clock.Now().Sub(h.since), 0)
}

// lease returns the ttl to ask for.
func (h *Hold) lease() time.Duration { return max(h.m.cfg.TTL, h.restOfMinHold()) }
