package storetest

import (
	"context"
	"time"

	"github.com/lockfx/lockfx"
)

// A Factory makes a fresh harness for one case: a store in which no key of the
// case is known. Stores of several cases may share a server.
type Factory func() (*Harness, error)

// Harness is a store and what can be done to it. All but Store and TTL is optional.
type Harness struct {
	Store lockfx.Store

	// TTL is a lease that the cases can wait out, yet long enough for a slow machine:
	// a second for a server, some milliseconds of virtual time for a store in this
	// process. At least four times Resolution.
	TTL time.Duration
	// Resolution is the smallest ttl that the store takes; 0 says that any is taken.
	Resolution time.Duration
	// Late is how long after its ttl the engine may still hold an expired lease.
	Late time.Duration

	// Sleep waits; time.Sleep by default.
	Sleep func(time.Duration)
	// Wrap runs a case, for instance in a bubble of testing/synctest.
	Wrap func(run func())

	// Second opens another handle on the same data, as another process would.
	Second func() (lockfx.Store, error)
	// Restart stops the engine, starts it on what it kept, and opens a handle.
	Restart func() (lockfx.Store, error)
	// LoseData makes the engine forget everything, as a lost disk does, and opens a
	// handle.
	LoseData func() (lockfx.Store, error)
	// Partition cuts the store off its engine until heal is called.
	Partition func() (heal func(), err error)
	// LoseReplies lets requests through and loses the answers until heal is called.
	LoseReplies func() (heal func(), err error)
	// Hold keeps back the next request that the store sends, whichever it is, until
	// deliver is called: it then arrives late, though its caller may have given up or its
	// client may have sent it again. What the store sends after it passes meanwhile, if
	// need be on a new connection. deliver returns when the engine has dealt with the
	// late request, or at once if none was kept back; nobody needs its answer. Before the
	// kit calls Hold it has used the store, so that there is a connection and the next
	// thing on it is a request.
	Hold func() (deliver func(), err error)
	// SkewClientClock sets the clock of this side off by d for a handle that it opens.
	SkewClientClock func(d time.Duration) (lockfx.Store, error)
	// StepClock sets the clock of the engine, by which it judges expiry, forward or, if d
	// is negative, back.
	StepClock func(d time.Duration) error
	// Crash acquires key in another process and kills that process while it holds
	// the lease.
	Crash func(ctx context.Context, key string, ttl time.Duration) (lockfx.Token, error)

	// Waive names promises that the store does not keep, with the reason.
	Waive map[string]string
	// Close ends what the harness started.
	Close func()
}
