package lockfx

import "time"

// Clock tells the time and arms timers. It is injectable so that tests own time.
type Clock interface {
	// Now returns the present time, with its monotonic reading if there is one.
	Now() time.Time
	// AfterFunc calls f in its own goroutine once d has passed. It returns nil if
	// no timer can be armed: a lease is then not accepted, or lost.
	AfterFunc(d time.Duration, f func()) Timer
}

// Timer is a one-shot timer of a [Clock].
type Timer interface {
	// Stop keeps the timer from firing, and reports whether it did.
	Stop() bool
}

// SystemClock returns the clock of this machine: package time.
func SystemClock() Clock { return systemClock{} }

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }
