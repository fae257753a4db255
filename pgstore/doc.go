// Package pgstore is the lockfx.Store over PostgreSQL 12 and newer, through a
// pgxpool.Pool, also behind PgBouncer in transaction mode.
//
// A lease is a row. No session holds it, so any connection will do for any call, and
// a connection that breaks takes no lease with it.
//
// # One statement, one message, one round trip
//
// What a call does is one statement, in a file of the folder sql, and it travels with
// its transaction in one message:
//
//	begin isolation level read committed read write; the statement; commit
//
// The server begins to execute a message when it has all of it. If the host dies while it
// sends, no transaction is left open and no row locked. The isolation level is said
// each time because a role or a database can have a stricter default, under which the
// server would answer contention with serialization failures.
//
// A pool that is set to prepared statements, as it is by default, gets them: each
// connection learns each statement once, in a round trip of its own. In every other mode,
// and where a pooler mixes prepared statements up, the message has the text. Break alone
// takes two round trips: the first shows whose lease it is.
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
// # Connections that are of no use
//
// A call has attempts. One that is not answered within 5 s, or within a quarter of the
// time that the context of the call has left, is given up, and its connection closed. Each
// further attempt has twice as long, and at most half of what is left. The connections that
// lie idle in the pool are then tested: what made one silent often does so to others.
//
//	refused to connect                   error
//	broken, terminated, a standby        another attempt
//	no answer, no connection to be had   another attempt
//	any other error of the server        error; the server has rolled back
//
// If the pool has no connection to give within that time, what keeps or ends a lease
// goes through on one beyond the pool, which is closed once it was idle for a minute. See
// [WithConnections].
//
// # Requests that arrive late, or twice
//
// An attempt that was given up may have been executed, or may still be on its way. So each
// request carries a number that tells it from every other one of its store, and rises.
//
//   - An acquisition is undone, and then made again under another number. Undoing frees the
//     lease that the request may have got, and leaves a tombstone in the row, which for an
//     hour refuses that request and earlier ones of its store. If it is the context that
//     has ended, undoing goes on for at most 10 s on a context of its own, of which the
//     call itself waits for 50 ms.
//   - A renewal that arrives after a later one does nothing.
//   - A release that finds no lease after an attempt that was not answered looks into the
//     row, which tells a lease that was released from one that has expired or was broken. If
//     another acquisition was granted since, it can't tell, and the call is an error.
//   - A break frees the lease of one token only, as a release does.
//
// # What waits for the disk
//
// A lease that is granted or renewed is on the disk, unless [WithAsyncCommit] says
// otherwise. A release, and the note that a key is watched, are not waited for. If the
// server crashes and forgets a release, the lease runs out. It can't forget a release and
// know a grant that came after, since the disk keeps their order; and the token of the
// lease has been on the disk since it was granted, so the next one is greater.
//
// # Rows of unused keys
//
// A row is deleted once its lease has been over for the time of [WithMemory], rounded
// up to the next hour. One in 16 acquisitions, of whatever key, takes a sweep of at
// most 64 such rows along in its message, after its commit. The sweep goes past rows that
// somebody works on. Where nobody acquires anything, nothing is swept.
//
// # Waiting
//
// A watch is noted in the row for five minutes, and noted again every two. A release
// notifies in its own transaction if the row has such a note, and goes without otherwise:
// commits that notify pass one at a time in a whole cluster of databases. All watches of a
// store share one connection, which is there only while somebody watches. See
// [Store.Watch].
package pgstore
