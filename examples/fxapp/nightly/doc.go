// Package nightly is the job of the example: it reads an access log and writes the
// report on it, under a lock.
//
// [Write] is the body of a run. What it needs is built for each run, in this order,
// and taken down in reverse while the lease is still held:
//
//	fencing token ─▶ Output ─┐
//	Log ─▶ Input ────────────┴─▶ Write ─▶ Input closed ─▶ lease released
//
// The rest of the application takes a [Report] and knows nothing of locks.
package nightly
