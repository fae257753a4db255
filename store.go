package lockfx

import (
	"context"
	"time"
)

// Store grants leases. It is the primitive under every lock. Package storetest checks
// what follows.
//
// Implementations must be safe for concurrent use. Of every call:
//
//   - A key that [CheckKey] refuses, and a ttl that [CheckTTL] refuses for the store's
//     resolution or that the engine can't count, is an error that matches [ErrConfig] and
//     changes nothing: waiters try again after every other error. All other keys and
//     ttls work, and keys are compared byte by byte.
//   - The store's clock, read at the moment of the decision, decides expiry. A lease
//     never ends before its ttl is over: its holder relies on all of it but 1%.
//   - The check and the write are one atomic step: no other request comes between them.
//   - ctx bounds the call, not the lease. A call whose ctx has ended returns soon, with an
//     error that matches ctx.Err(); one that began so changes nothing.
//   - A request may arrive more than once, and long after its caller has given up. It then
//     changes no later lease, and acquires none.
//   - An outage, and an outcome that is not known, is an error. It is never a refusal,
//     which is final: a caller that gets false gives up its work.
//
// A lock bounds every call. The Deadline of the context of Acquire and Renew is the
// instant from which the lease asked for, or held, would not be trusted any more, or an
// earlier one: a store can divide that time among several attempts.
type Store interface {
	// Acquire takes the lease on key for ttl if it is free or expired, in one
	// call, and never waits for it.
	//
	// Contention is a Grant whose OK is false and a nil error. An outage is an
	// error, never the other way round. When ctx ends during the call, no lease is
	// left behind, in these steps: the request carries a unique tag; the store
	// undoes that tag on a context with a timeout; the undo leaves a tombstone, so
	// that the request is refused if it arrives later. A request that its client
	// sends again has the same tag and gets the answer of the first one; a copy
	// that arrives after the lease was released is not granted.
	//
	// Every acquisition is a separate owner: as long as the first lease is unexpired,
	// every other Acquire is refused, also by the same process, and a refusal changes
	// nothing. An owner needs only its token, through any handle on the same data. The
	// label of ctx ([LabelFrom]) stays with the lease until it ends, and decides nothing.
	Acquire(ctx context.Context, key string, ttl time.Duration) (Grant, error)

	// Renew sets the time left of the lease on key to ttl if that lease is
	// unexpired and carries exactly token; it then returns true. It can shorten a
	// lease as well. It never re-creates a lease, and with a foreign token it
	// changes nothing and returns false. One that arrives after a later renewal
	// changes nothing either; it returns true, since the lease is still there.
	Renew(ctx context.Context, key string, token Token, ttl time.Duration) (bool, error)

	// Release frees the lease on key if it is unexpired and carries exactly token;
	// it then returns true, to one caller alone. False says that the lease was
	// lost, so a release that is sent again because its answer was lost returns
	// true or an error. A late release never touches the lease of the next holder,
	// and what was freed stays free, also if the clock is set back.
	Release(ctx context.Context, key string, token Token) (bool, error)
}

// Grant is a store's answer to [Store.Acquire]. The zero Grant is a refusal.
type Grant struct {
	// OK is strict: only true is a grant.
	OK bool
	// Token is at least 1 on a grant, and greater than every token that the store
	// ever issued for the key, whatever its clock says. On a refusal it is 0.
	Token Token
	// HeldBy is, on a refusal and if it is known, the label of the holder, or the
	// beginning of a long one. It is for people.
	HeldBy string
	// RetryAfter is, on a refusal, how long the current lease, as last renewed, can last. A
	// caller that waits for this time finds the key free, unless it was renewed or taken
	// meanwhile. Zero means unknown; a store that is a [Watcher] must set it.
	RetryAfter time.Duration
}
