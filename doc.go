// Package lockfx is the contract between a lock's lifecycle and the store that
// grants it: who may hold a key, under which fencing token, and for how long.
//
// A lock here is a LIFECYCLE. It asks a [Store] for a lease, holds it, renews it
// with heartbeats, and gives it back or loses it:
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
// People who write a store implement [Store] and, where their engine allows it,
// the optional capabilities [Watcher], [ManyRenewer], [Inspector], [Breaker] and
// [Closer].
//
// # What a lease promises
//
// At any instant, judged by the store's clock, at most one acquisition of a key
// is unexpired. Each acquisition carries a [Token] greater than every token the
// store ever issued for that key. A holder stops trusting its lease before the
// store can give it to anybody else, as long as the two clocks run at nearly the
// same rate: it counts from before its request left, and takes a margin off.
//
// # What a lease cannot promise
//
// A lease can't stop a machine instruction. A process that was paused between
// its last look at the lease and a write sends that write after the lease has
// passed on. Only the resource can refuse it, by remembering the greatest token
// it has seen and rejecting smaller ones with [ErrStaleToken]. That is what the
// token is for; a lock without it protects nothing that a pause can reach.
// (Martin Kleppmann, "How to do distributed locking", 2016.)
package lockfx
