package lockfx

import "time"

// Holder is one acquisition as its body sees it. Kept beyond its run it reports
// not held, for ever: it never shows the state of a later run.
//
// All methods are safe for concurrent use, take no mutex and allocate nothing.
type Holder interface {
	// Key returns the key that the lease is on.
	Key() string
	// Token returns the fencing token, or 0 once the lease is not held.
	Token() Token
	// Held reports whether the lease can still be trusted: it was not lost or
	// released, and its local deadline has not passed on either the monotonic or
	// the wall clock.
	Held() bool
	// State returns the state of this acquisition: StateHeld, StateLost, StateReleasing or
	// StateReleased.
	State() State
	// Deadline returns the instant from which Held is false unless a heartbeat
	// moves it: the time just before the last successful request, plus the ttl,
	// less a margin for clocks that run at different rates.
	Deadline() time.Time
}
