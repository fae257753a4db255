// Package memstore is the lockfx.Store that lives in the memory of one process.
//
// It excludes the goroutines of that process from each other, and nobody else.
// It is for programs that run once, and for tests: it keeps every promise of the
// contract, and its clock can be injected.
//
// # One mutex, one clock reading, one decision
//
// Every call takes the same steps, and nothing else ever touches a lease: there
// are no goroutines and no timers.
//
//	check ctx, key, ttl ─▶ lock ─▶ read the clock ─▶ check ctx ─▶ decide ─▶ unlock
//
// The clock is read under the mutex because a call may wait for the mutex: an
// instant from before the wait could find a lease expired that is not, or still
// valid when it no longer is. A lease is expired from the instant now >= expires
// on. The context is looked at last, so that a dead one changes nothing.
//
// # Tokens
//
// The token of a grant is the greater of
//
//	the last token that this store issued, for any key, plus 1
//	the store's clock in microseconds since 1970
//
// One mark serves all keys, so a key that is not held costs nothing, and a token
// is never forgotten with the record of its lease. The clock makes tokens rise
// across a restart as well: a later store starts from a later instant.
//
// This has a limit. Tokens repeat across a restart when the wall clock is stepped
// back over it, or when the process before it granted more than one lease in each
// microsecond of its life, so that its tokens ran ahead of the clock. Within one
// store tokens rise whatever the clock does.
//
// # Memory
//
// Only held keys cost memory, and watched ones. A released record is deleted. A
// record that expired and that nobody asks for is swept: after as many changes as
// there are records, the live ones are copied to a new map, which costs each call
// a constant on average; the one call that copies takes as long as there are
// records. Copying is needed because a Go map never shrinks.
package memstore
