package lifecycle

import (
	"context"
	"time"

	"github.com/lockfx/lockfx"
)

// request is the context of a call of the store that asks for a lease. Something else ends
// it at its deadline; clients that heed deadlines alone learn that instant from it.
type request struct {
	context.Context
	deadline time.Time // on the system's clock
}

// Deadline returns the caller's deadline or that of the lease, whichever is earlier.
func (r *request) Deadline() (time.Time, bool) {
	if at, limited := r.Context.Deadline(); limited && at.Before(r.deadline) {
		return at, true
	}
	return r.deadline, true
}

// onSystemClock returns the instant that is as far from the system's present as at is from
// now on the machine's clock: what a client does with a deadline, it does by package time.
func (m *Machine) onSystemClock(at, now time.Time) time.Time {
	if m.cfg.Clock == lockfx.SystemClock() {
		return at
	}
	return time.Now().Add(at.Sub(now))
}
