// Package pgstore is the lockfx.Store over PostgreSQL 12 and newer, through a
// pgxpool.Pool, also behind PgBouncer in transaction mode.
//
// A lease is a row. No session holds it, so any connection will do for any call, and
// a connection that breaks takes no lease with it.
//
// # One statement, one round trip
//
// What a call does is one statement, in a file of the folder sql, and it travels with
// its transaction:
//
//	begin isolation level read committed read write ┐
//	the statement                                   ├─▶ sent at once, then answered at once
//	commit                                          ┘
//
// The isolation level is said each time because a role or a database can have a
// stricter default, under which the server would answer contention with
// serialization failures. The statements are sent in the mode that the pool is set
// to. Its default is prepared statements, which is the fastest; a pool in front of a
// pooler has to be set to a mode without them anyway, and then these go without too.
// One round trip it is in each mode but describe_exec, once the connection knows the
// statements.
//
// # The clock is read when the row is ours
//
// A statement that finds the row locked waits, and what it has computed before that
// is out of date by then: a lease could be granted that is already over, or one that
// has ended be renewed. So every instant is read after the wait. An acquisition is an
// INSERT .. ON CONFLICT DO UPDATE, whose update is computed when the row is locked; a
// renewal locks all its rows first, in one order, and reads the clock then.
//
// A refusal only reads: it takes no lock, writes nothing and waits for nobody.
//
// # Acquisitions whose outcome is unknown
//
// Each acquisition carries a random tag. If its context ends or its connection breaks
// before the answer is there, the lease may have been granted. It is then undone, on
// another connection: that frees the lease of the tag if there is one, and leaves the
// tag in the row, so that a request which is still on its way and arrives later is
// not granted.
//
// If it was the connection that broke, the acquisition is then tried once more, as a
// new one. If it was the context that ended, undoing goes on for at most 10 s on a
// context of its own, of which the call itself waits for 50 ms. Renewals are simply
// sent again when the connection breaks; a release is not, and its error says that
// the outcome is unknown.
//
// # Rows of unused keys
//
// A row is deleted once its lease has been over for the time of [WithMemory], rounded
// up to the next hour. One in 16 acquisitions, of whatever key, takes a sweep of at
// most 64 such rows along in its round trip. The sweep goes past rows that somebody
// works on. Where nobody acquires anything, nothing is swept.
//
// # Waiting
//
// A release notifies in its own transaction. All watches of a store share one
// connection, which is there only while somebody watches. See [Store.Watch].
package pgstore
