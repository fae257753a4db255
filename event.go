package lockfx

import (
	"strconv"
	"time"
)

// EventKind is what happened to a lock.
type EventKind uint8

// The kinds of events, in the order in which a lock goes through them.
const (
	EventAcquired         EventKind = iota + 1 // a lease was granted and accepted
	EventRefused                               // the key is held by another
	EventFailed                                // the attempt failed: Err says why
	EventRenewFailed                           // a heartbeat failed and will be tried again: Err says why
	EventLost                                  // the lease was lost: Reason says why, and Err if there was one
	EventReleased                              // the hold is over; Err is set if the store did not confirm it
	EventDisposed                              // the lock was disposed of
	EventCallbackPanicked                      // an observer or OnLost panicked: Err says with what
	EventSkipped                               // a run did not begin, and need not: Err says why
	EventsDropped                              // callbacks were too slow: Dropped events were left out
)

var eventNames = [...]string{
	"none", "acquired", "refused", "failed", "renew failed", "lost", "released", "disposed",
	"callback panicked", "skipped", "dropped",
}

// String returns the kind in lower case, such as "acquired".
func (k EventKind) String() string { return nameOf(eventNames[:], uint8(k), "EventKind") }

// Event is one transition of a lock, as logs, metrics and traces see it.
type Event struct {
	Kind       EventKind
	At         time.Time
	Lock       string        // the lock's name in the application
	Key        string        // the key in the store
	Token      Token         // the acquisition that it is about, or 0
	Reason     Reason        // why it ended, or none
	HeldFor    time.Duration // how long it was held; set on EventLost and EventReleased
	HeldBy     string        // on EventRefused: the holder's label, if known
	RetryAfter time.Duration // on EventRefused: how long that lease can last, if known
	KeptFor    time.Duration // on EventReleased: how long fxlock.MinHold still keeps the key
	Gate       string        // what a gate in front of the store said
	Dropped    int           // on EventsDropped: how many events were left out
	Err        error
	// SilentSince is when the store last confirmed the lease: on EventRenewFailed, and on
	// EventLost with an Err.
	SilentSince time.Time
}

// String returns the event in one line for people.
func (e Event) String() string {
	s := strconv.Quote(e.Lock) + " " + e.Kind.String()
	if e.Token != 0 {
		s += " (token " + e.Token.String() + ")"
	}
	if e.Dropped > 0 {
		s += " " + strconv.Itoa(e.Dropped) + " events"
	}
	if e.Reason != ReasonNone {
		s += ": " + e.Reason.String()
	}
	if !e.SilentSince.IsZero() {
		s += silence(e.SilentSince, e.At)
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}
