// Package queue lets callers of one lock wait for it in order.
//
//	callers ──▶ queue (first come, first served) ──▶ head ──▶ gate ──▶ store
//	                                                          │ refused
//	                                                          ▼
//	                                   watch, try again, then sleep until
//	                                   the key may be free or its lease ends
//
// Only the head of the queue talks to the store: one contender a lock and process,
// however many wait. Where the store is a [lockfx.Watcher] the head is woken;
// elsewhere it polls, at jittered intervals. While the store can't be reached it tries
// again, ever less often, and tells that once. What a store says of time, and how its
// watches behave, is believed within bounds, which bounds.go lists.
//
// Who stops waiting has left at once: without a place in the queue, a goroutine or a
// watch. Each attempt is judged anew, so that a lease counts from the attempt that got
// it, and the limit of the waiting says nothing about the hold.
package queue
