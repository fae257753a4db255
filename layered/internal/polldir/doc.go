// Package polldir is the portable lock of npm's proper-lockfile 4: a directory that
// is made atomically, whose mtime the holder refreshes, and which counts as stale
// when it was not refreshed for a while. It needs nothing of a file system but
// mkdir, rmdir, stat and utimes, and waits by looking again.
//
// # On disk
//
//	PATH                      the lock: an empty directory; its mtime is the last refresh
//	PATH.break-<hex mtime>    the licence to break the stale lock of exactly that mtime
//	PATH.stale-<hex mtime>    that stale lock, on its way out
//
// The last two are there for an instant. proper-lockfile knows the first alone.
//
// # Breaking a stale lock
//
// Removing a directory because it was stale a moment ago can hit the fresh lock of
// somebody who was faster. So a contender first makes the licence, which is named
// after the stale lock and which one contender alone can make; looks again; moves
// the stale directory aside by rename; and looks at what it moved. Had
// it been paused in between for longer than a stale time and moved a fresh lock, it
// puts that back. Then it competes for PATH like everybody else.
//
// proper-lockfile removes a stale directory without a second look. So whoever got
// PATH after breaking a lock waits for longer than such a contender needs between
// its look and its removal, and makes sure of PATH again.
//
// # Losing
//
// A holder judges by its own clock: a refresh that did not succeed within the stale
// time, less a margin, loses the lock at once, whether or not somebody else has
// taken it. Both readings of the clock count, so that a machine that was suspended
// does not trust itself.
package polldir
