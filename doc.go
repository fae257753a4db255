// Package lockfx is the contract between a lock's lifecycle and the store that
// grants it: who may hold a key, under which fencing token, and for how long.
//
// A lock here is a lifecycle. It acquires a lease from a [Store], renews it with
// heartbeats, and releases it or loses it:
//
//	                no grant
//	          ┌──────────────────┐
//	          ▼                  │
//	┌──────┐  acquire  ┌─────────┴─┐  grant   ┌──────┐  release  ┌───────────┐
//	│ Idle ├──────────▶│ Acquiring ├─────────▶│ Held ├──────────▶│ Releasing │
//	└──────┘           └───────────┘          └─┬────┘           └─────┬─────┘
//	                         ▲                  │ renewal refused,     │
//	                         │ acquire          │ deadline passed ...  ▼
//	                         │                  ▼                ┌──────────┐
//	                         │               ┌──────┐  release   │ Released │
//	                         │               │ Lost ├───────────▶│          │
//	                         │               └──────┘            └────┬─────┘
//	                         └────────────────────────────────────────┘
//
// Applications use package fxlock, which puts a lock into an fx application.
// Authors of a store implement [Store] and, where their engine allows it,
// the optional capabilities [Watcher], [ManyRenewer], [Inspector], [Breaker] and
// [Closer].
//
// # What a lease promises
//
// At any instant, by the store's clock, at most one acquisition of a key is
// unexpired. Each acquisition carries a [Token] greater than every token the store
// ever issued for that key. A holder stops trusting its lease before the store can
// grant it to another, as long as the two clocks run at nearly the same rate: the
// holder counts from before it sent the request, and subtracts a margin.
//
// # What a lease cannot promise
//
// A lease can't stop a machine instruction. A process that is paused between its
// last check of the lease and a write sends that write after another process has
// acquired the lease. Only the resource can refuse the write, by remembering the
// greatest token it has seen and rejecting smaller ones with [ErrStaleToken].
// Without that check, a lock can't protect a resource from a paused process.
// (Martin Kleppmann, "How to do distributed locking", 2016.)
package lockfx
