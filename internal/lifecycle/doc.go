// Package lifecycle drives one lock over one [lockfx.Store]: acquire, hold, heartbeat,
// release or lose. It knows neither fx, nor waiting, nor dependency injection.
//
// # Overview
//
// A [Machine] is the lock; a [Hold] is one acquisition of it, and what a body sees as its
// [lockfx.Holder]. A machine has at most one hold at a time, and one life: after Dispose it
// is never used again. Whoever starts an application again makes a new machine, which gets
// the last token of the old one.
//
//	package queue      callers of one lock in order; calls RunOn, Watch, Vacant, Inside
//	package fxlock     the runs of an application; calls Acquire, Release, Tick, Dispose
//	         │
//	         ▼
//	      Machine ──── the store: Acquire, Renew, Release
//	         │
//	       Hold ────── two one-shot timers: the beat and the expiry
//
// # Moves
//
// The state goes along the table in moves.go, and nowhere else; any other move panics.
//
//	Idle ──▶ Acquiring ──▶ Held ──▶ Releasing ──▶ Released ──▶ Acquiring ...
//	  ▲          │           │                       ▲
//	  └──────────┘           └──────▶ Lost ──────────┘
//
// Acquiring goes back to Idle for everything that is not exactly a grant. Held goes to Lost
// through one function, lose, whoever noticed the loss.
//
// # Flags beside the state
//
// Each says something that the state does not, and is guarded by the machine's mutex:
//
//	Machine.disposed   Dispose has begun: acquisitions are refused, in every state
//	Machine.over       the disposal was announced, which happens once
//	Machine.inUse      a goroutine of an acquisition, a run or a release is under way;
//	                   Dispose waits for it. A lease that is held by hand is not in use
//	Hold.running       a run owns the hold, and alone releases it
//	Hold.releasing     a release has begun; a second one returns at once
//	Hold.abandoned     the disposal ran out of time, or a body left something running: no more heartbeats
//
// # The trust window
//
//	asked                    beat (asked + heartbeat)            deadline    asked + ttl
//	  │────────────────────────│───────────────────────────────────│───────────│
//	  │ request ──▶ grant      │ renew ──▶ true: a new asked,      │  margin   │ the store may
//	  │                        │           a new deadline          │           │ grant it again
//
// The lease is counted from before the request left: however long the answer took, the
// holder stops trusting its lease before the store can pass it on. The margin is for clocks
// that run at different rates (see margin). Held compares the clock by itself, so that a
// process which stood still does not trust itself when it goes on; it goes by the wall clock
// as well as by the monotonic one, which stands still while a machine is suspended. A wall
// clock that steps forward costs the lease, which is the safe side.
//
// The body, the beat, the expiry, a release and a disposal all meet under one mutex, and
// nothing of the user's is ever called under it. Observers and OnLost are called from a
// bounded queue, by one goroutine at a time; no run waits for them.
//
// # What happens when
//
//	the store refuses                  Idle, (false, nil); EventRefused
//	the store fails, panics, hangs     Idle, an error that matches ErrStore
//	the answer is no grant             Idle, ErrBadGrant
//	the token does not rise            given back; ErrFenceRegressed
//	the grant comes too late           given back; the error says which limit was over
//	ctx ends during the request        given back if it was granted after all; the cause of ctx
//	the clock arms no timer            given back; ReasonTimerUnarmable
//	a renewal is refused               Lost, HeartbeatFailed: final
//	a renewal fails                    Lost, StoreError; with RenewRetry it is tried again
//	no renewal succeeds in time        Lost, Expired, by a timer that needs no answer
//	the longest hold is over           Lost, MaxHold
//	the body panics or exits           released, and the panic goes on
//	the body outlives its disposal     no more heartbeats; its own goroutine releases
//	the release fails                  Released all the same; the lease expires
//	an observer panics                 EventCallbackPanicked, once
//	an observer blocks                 later events wait, and beyond 1024 are dropped and counted
package lifecycle
