// Package etcdstore is the lockfx.Store over etcd 3.5.13 and newer: one member or a
// cluster. It takes a client of go.etcd.io/etcd/client/v3.
//
//	fxlock.Module("nightly", fxlock.StoreFrom(etcdstore.From))
//
// # One record, one transaction
//
// A lock is one key of etcd under a lease of its own, and everything about it is
// decided by a transaction on that key. When the lease ends, etcd deletes the key.
//
//	lockfx/nightly   create revision   1847                the token
//	                 value             host/4711/app       the label of the holder, for people
//	                 lease             1d3c9e0f5a7b2c44    its end
//
//	acquire   if there is no key, put it under a lease that carries nothing; else read it
//	renew     keep the lease alive, and meanwhile read the key: is it this token's?
//	release   if the key is this token's, delete it
//
// The ttl of a lease can't be changed, so a renewal with another ttl moves the key to
// a new lease. That keeps the create revision.
//
// # Tokens
//
// A token is the revision of the transaction that put the key. Revisions count the
// writes of the whole cluster in the order of its log, so tokens rise for all keys
// together, across everything that the log survives.
//
// # A request whose outcome is unknown
//
// An acquisition chooses the id of its lease, and no id is ever asked for twice. So
// the lease is also the tag of the acquisition: an attempt that finds the key under
// its own lease has won before. And it is its undoing: once the lease is revoked, its
// key is gone, and a request that arrives later still is refused for want of it.
//
//	Acquire ── put under lease ──▶ ... held up ...     ──▶ refused: no such lease
//	   │                                               ▲
//	   └─ ctx ends ── revoke lease ──▶ key gone, lease gone for good
//
// The revoking is tried in a goroutine of the store for up to 10 s, after which the
// lease ends by itself. Acquire waits 50 ms for it, so that ordinarily the key is free
// again when Acquire returns.
//
// While a leader is elected, a connection replaced or a member stuck, a call is tried
// again, for 5 s or until its ctx ends. A renewal goes on until the deadline of its ctx,
// which is that of the lease. Each attempt takes up to a third of the time left and 2 s at
// most, since the next one may go over another connection.
//
// # Failures
//
//	the token of the client expired, or a password or role was changed   nothing: the next stream gets a new token
//	a connection is dead, and the client has several endpoints           an attempt is lost, no lease
//	the same, and one endpoint                                           DialKeepAliveTime replaces it, in 10 s at the earliest
//	the same, without that                                               errors that say so; the holder stops at its deadline
//	a watch is on a dead connection                                      it is lost within 15 s, and whoever waits looks again
//	a request arrives late                                               it is refused: it names a lease that is gone or was left
//	a leader is lost                                                     calls wait for the next one; leases last up to a ttl longer
package etcdstore
