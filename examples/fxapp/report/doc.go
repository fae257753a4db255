// Package report is the nightly report on an access log: what it counts, how it
// reads, and where it goes.
//
// [Report] adds up entries and renders them for people. [Sink] is the resource
// that the lock protects, and shows what every such resource has to do: it
// remembers the greatest fencing token it has seen and refuses smaller ones. A
// replica that was paused in the middle of its report, and woke up after another
// had taken over, can't overwrite the newer report, whatever it believes about
// its lease:
//
//	replica A  token 33 ──── paused ───────────────────── Write(33) ✗ stale
//	replica B                token 34 ── Write(34) ✓
//	mark              0                  34                34
package report
