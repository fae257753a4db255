// Package redisstore is the lockfx.Store over Redis: a single server, one behind
// sentinels, or a cluster. It needs Redis 6.2 or newer, or Valkey, and a client of
// github.com/redis/go-redis/v9.
//
//	fxlock.Module("nightly", fxlock.StoreFrom(redisstore.From[*redis.Client]))
//
// # One record, one script, one round trip
//
// A lock is one hash, and everything about it is decided by a script on the server,
// by the server's clock. Nothing that a client believes about the time is sent.
//
//	lockfx:{nightly}   token   1796040934762506    the last one that was issued
//	                   since   1796040934762506    when the lease was taken or renewed, 0: released
//	                   ttl     30000000            its length in microseconds, 0: released
//	                   owner   KQGSL...            the tag of the acquisition
//	                   label   host/4711/app       for people
//
// The braces keep what belongs to a lock in one slot of a cluster. The name is also
// the channel on which the end of a lease is published.
//
// # Tokens
//
// The token of a grant is the greater of the last token plus one, and the server's
// clock in microseconds. So it also rises when the data is gone: after FLUSHALL, after
// a crash without persistence, and when a replica is promoted that missed the last
// writes.
//
// # A request whose outcome is unknown
//
// A client repeats a request whose reply it lost. Each acquisition and each release
// carries a tag of its own, by which a repetition recognises what it has done before.
// And when a call fails, or its caller gives up, its request may be under way still:
//
//	Acquire ── tag ──▶ ... held up ...                 ──▶ refused: a tombstone
//	   │                                               ▲
//	   └─ ctx ends ── undo tag ──▶ lease gone, tombstone for 5 minutes
//
// The undo runs in a goroutine of the store for up to 5 s. Acquire waits 50 ms for
// it, so that ordinarily the key is free again when Acquire returns.
package redisstore
