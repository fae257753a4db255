// Package lifecycle drives one lock over one [lockfx.Store]: acquire, hold,
// heartbeat, release or lose.
//
// A [Machine] is the lock; a [Hold] is one acquisition of it. The machine moves
// only along the table in moves.go. Time runs like this:
//
//	asked                    beat (asked + heartbeat)            deadline    asked + ttl
//	  │────────────────────────│───────────────────────────────────│───────────│
//	  │ request ──▶ grant      │ renew ──▶ true: a new asked,      │  margin   │ the store may
//	  │                        │           a new deadline          │           │ grant it again
//
// The lease is counted from before the request left, so that however long the
// answer took, the holder stops trusting its lease before the store can pass it
// on. Two one-shot timers belong to a hold: the beat, which renews and arms
// itself again, and the expiry, which needs no answer from anybody to declare
// the loss. The body, the beat, the expiry, a release and a disposal all meet
// under one mutex; nothing of the user's is ever called under it.
package lifecycle
