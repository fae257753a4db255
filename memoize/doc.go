// Package memoize turns a function without arguments into a getter that computes
// once and then keeps what it computed.
//
//	getCatalog := memoize.Func(func(ctx context.Context) (*Catalog, error) { ... })
//	...
//	catalog, err := getCatalog(ctx)
//
// [Func] is for work that takes a context and may take long. [Value] is for work
// that takes none. There is no expiry: a success is kept for the life of the
// getter. nil and the zero value are successes like any other.
//
//	call ──▶ kept? ──yes──▶ the value
//	           │no
//	           ▼
//	       in flight? ──no──▶ begin a flight ──┐
//	           │yes                            │
//	           └────────▶ share it ◀───────────┘
//	                         │
//	       ┌─────────────────┼──────────────────────┬──────────────────┐
//	       ▼                 ▼                      ▼                  ▼
//	    success      error, panic, Goexit   my ctx is over    I am part of the flight
//	  keep, return    every caller gets      I leave, and      ErrReentrant, not a
//	                 it, the next retries   nobody notices          deadlock
//
// # What a flight is
//
// One run of the function, shared by all who call meanwhile. There is never more
// than one flight of a getter at a time, and none after a success.
//
// The flight of a [Func] has a goroutine of its own. Its context carries the values
// of the caller that began it, but neither that caller's deadline nor its end: who
// came first has no more say than who came last. It is cancelled, with the cause
// [ErrAbandoned], when the last caller has left. A call that comes while an
// abandoned flight is still on its way down waits for its end, then begins another
// one; if the flight succeeds after all, its value is kept.
//
// The flight of a [Value] runs on the goroutine of the caller that began it. Nobody
// can leave it.
//
// # What goes wrong
//
// An error comes back to every caller as it is. A panic is raised again in every
// caller, as a [*PanicError] that has the value and the stack of the function. If
// the function ends its goroutine by [runtime.Goexit], callers on other goroutines
// get [ErrGoexit]. None of these is kept. A panic of an abandoned flight has nobody
// to go to and is dropped with the flight.
//
// # Calling oneself
//
// A function that calls its own getter would wait for itself for ever. Such a call
// gets [ErrReentrant] at once, also when the way back leads through other getters of
// this package. The call is recognised by its context, if it descends from the
// flight's, and by its goroutine, if that is the one that the flight runs on. What
// can't be recognised is a call from ANOTHER goroutine that the function started and
// waits for, without the flight's context: to [Value] no context can be given, so
// its function must not wait for a goroutine that calls the getter.
//
// # Why not the libraries
//
// sync.OnceValue keeps panics for ever and has no place for an error that is to be
// tried again. singleflight of golang.org/x/sync keeps nothing, does not know when
// its callers leave, and deadlocks on itself.
package memoize
