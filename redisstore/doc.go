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
//	                   since   1796040934762506    when the lease was taken or renewed; gone once it is released
//	                   ttl     30000000            its length in microseconds; gone with since
//	                   owner   KQGSL...            the tag of the acquisition
//	                   label   host/4711/app       for people
//	                   renewed KQGSL...17          the store that renewed it last, and the number
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
// A request without an answer is sent again, by the store over another connection or by
// the client, and any of its copies may arrive late. Each acquisition and each release
// carries a tag, and each renewal a number, by which a copy is told from something new:
//
//	Acquire ── tag ──▶ ... held up ...                    ──▶ refused: a tombstone
//	   ├─ again, tag ──▶ granted or refused, tombstone     ▲
//	   └─ ctx ends ── undo tag ──▶ lease gone, tombstone ──┘
//	Renew ── n ──▶ ... held up ...                        ──▶ changes nothing: n+1 was here
//	Release ── tag ──▶ freed, trace ── again, tag         ──▶ true: the trace
//
// A tombstone stays for 5 minutes, a trace for one. The undo runs in a goroutine of the
// store for up to 5 s. Acquire waits 50 ms for it, so that ordinarily the key is free again
// when Acquire returns.
//
// # What a server can refuse
//
// A server whose memory is full refuses the first write of a script if it needs memory. So
// whatever keeps or frees a lease begins with a write that needs none. A replica refuses
// every write. So a script that is about to say no does a write that changes nothing.
package redisstore
