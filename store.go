package lockfx

import (
	"context"
	"time"
)

// Store grants leases. It is the primitive under every lock.
//
// Implementations must be safe for concurrent use, must honour the end of ctx,
// and must judge expiry by the store's own clock, read at the moment of the
// decision. They accept every key that [CheckKey] accepts and refuse every other
// one, and they refuse a ttl that [CheckTTL] refuses for their resolution.
//
// A lock bounds every call. The Deadline of the context of Acquire and Renew is the
// instant from which the lease asked for, or held, would not be trusted any more, or an
// earlier one: a store can divide that time among several attempts.
type Store interface {
	// Acquire takes the lease on key for ttl if it is free or expired, in one
	// call, and never waits for it.
	//
	// Contention is a Grant whose OK is false and a nil error. An outage is an
	// error. The two are never mixed up. When ctx ends during the call, no lease
	// is left behind: the store undoes its own request on a bounded context.
	//
	// Every acquisition is its own owner: a second Acquire is refused as long as
	// the first lease is unexpired, whoever asks.
	Acquire(ctx context.Context, key string, ttl time.Duration) (Grant, error)

	// Renew sets the time left of the lease on key to ttl if that lease is
	// unexpired and carries exactly token; it then returns true. It can shorten a
	// lease as well. It never re-creates a lease, and with a foreign token it
	// changes nothing and returns false.
	Renew(ctx context.Context, key string, token Token, ttl time.Duration) (bool, error)

	// Release frees the lease on key if it carries exactly token; it then returns
	// true. A late release never touches the lease of the next holder.
	Release(ctx context.Context, key string, token Token) (bool, error)
}

// Grant is a store's answer to [Store.Acquire]. The zero Grant is a refusal.
type Grant struct {
	// OK is strict: only true is a grant.
	OK bool
	// Token is at least 1 on a grant, and greater than every token that the store
	// ever issued for the key.
	Token Token
	// HeldBy is, on a refusal and if it is known, the label of the holder. It is
	// for people.
	HeldBy string
	// RetryAfter is, on a refusal, how long the present lease can still last. Zero
	// means unknown; a store that is a [Watcher] must set it.
	RetryAfter time.Duration
}
