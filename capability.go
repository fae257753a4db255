package lockfx

import (
	"context"
	"time"
)

// A Watcher is a [Store] that can wake the waiters for a key.
type Watcher interface {
	// Watch signals when the key MAY be free. The channel has capacity 1; a signal
	// may be spurious, but not while nothing happens, since each costs an acquisition,
	// and none is missed after Watch has returned. A closed channel means that the
	// watch is lost, as by an outage or by [Closer]: poll, then watch again. A watch
	// that is lost is never left open.
	//
	// The end of a lease by expiry need not signal, so a waiter also tries again after
	// [Grant.RetryAfter]. A renewal that shortens a lease signals, at the latest when the
	// lease ends, since the RetryAfter that waiters have is then too long. A waiter
	// relies on a silent watch for at most a minute. The order is always: Acquire, Watch,
	// Acquire, wait.
	//
	// ctx bounds the call, not the watch. stop ends the watch, may be called more
	// than once, and must be called.
	Watch(ctx context.Context, key string) (freed <-chan struct{}, stop func(), err error)
}

// A ManyRenewer is a [Store] that renews many leases in fewer round trips than
// one for each.
type ManyRenewer interface {
	// RenewMany does for each element what [Store.Renew] does, and returns one
	// result for each, in the same order. Callers with the same leases in another
	// order do not lock each other out.
	RenewMany(ctx context.Context, renewals []Renewal) []Result
}

// Renewal is one request of a [ManyRenewer].
type Renewal struct {
	Key   string
	Token Token
	TTL   time.Duration
}

// Result is the outcome of one [Renewal], as [Store.Renew] returns it.
type Result struct {
	OK  bool
	Err error
}

// An Inspector is a [Store] that can say who holds a key.
type Inspector interface {
	// Inspect returns the unexpired lease on key, or the zero Lease when the key
	// is free. It changes nothing.
	Inspect(ctx context.Context, key string) (Lease, error)
}

// Lease is what an [Inspector] sees: a snapshot, old by the time it is read.
type Lease struct {
	Token    Token         // 0 when the key is free
	Label    string        // the holder's label, for people
	TimeLeft time.Duration // by the store's clock
}

// A Breaker is a [Store] that can free a key by force.
type Breaker interface {
	// Break frees the key from any holder, and reports whether there was an unexpired
	// lease. A late Break frees no lease that was acquired after the call. The next token
	// is greater than the broken one; the store refuses the broken holder's next heartbeat.
	Break(ctx context.Context, key string) (bool, error)
}

// A Closer is a [Store] that has resources to close, such as a subscription. It never
// closes the client that it was given, and frees no lease. A closed store may be used
// again, when an application is started again: it then reopens what it needs.
type Closer interface {
	Close(ctx context.Context) error
}
