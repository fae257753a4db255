// Package waiting lets callers of one lock wait for it in order.
//
//	callers ──▶ line (first come, first served) ──▶ head ──▶ store
//	                                                 │ refused
//	                                                 ▼
//	                                   watch, try again, then sleep until
//	                                   the key may be free or its lease ends
//
// Only the head of the line talks to the store: one contender a lock and process,
// however many wait. Where the store is a [lockfx.Watcher] the head is woken;
// elsewhere it polls, at jittered intervals.
package waiting
