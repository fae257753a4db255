// Package storekit is the skeleton of a [lockfx.Store]: what each of them needs, and none
// should write again. Every store of this project stands on it, and so can yours. It knows
// the standard library alone.
//
//	call ──▶ Check ──▶ the engine ──▶ an answer
//	                        └───────▶ Fault: one rule for what went wrong
//
//	Watch ──▶ Watches ──▶ one Source for all who watch, such as a connection that listens
//	                        │ Ready, Wake(name)
//	                        ▼
//	          each watch has a channel of its own, of capacity 1
//
// [Check] judges the arguments of a call, and [Fault] its failure. [Tasks] are the
// goroutines that a store owns, to be waited for by its Close. [Watches] keeps who watches
// which key. [Settle] adds up options, and reports all their faults at once. [Micros]
// rounds a ttl for an engine that counts microseconds.
//
// Whether a store keeps the contract is for package storetest to check.
package storekit
