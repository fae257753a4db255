// Package layered locks a key between the goroutines and the processes of one host,
// by layers of locks:
//
//	WithLock ─▶ predicate ─▶ memory ─▶ worker ─▶ flock ─▶ poll ─▶ predicate ─▶ action
//	            ("before")    one       the       flock(2)  directory  ("after")   │
//	                          Locker    process   on a file of proper-             │
//	                                                        lockfile               │
//	            result ◀── memory ◀── worker ◀── flock ◀── poll ◀── released ◀─────┘
//
// A lock here has no lease and no fencing token: it ends with its holder, and what it
// guards is on this host. Package fxlock has locks between hosts.
//
// # Layers
//
// They are always acquired in this order, and released in reverse:
//
//	memory  the goroutines that share one Locker, say one application's
//	worker  all Lockers of this process
//	flock   the system's lock on a file, with all processes that see the file
//	poll    a directory made atomically, as npm's proper-lockfile makes it: it works
//	        where the system has no locks, and waits by looking again
//
// Each is Off, On or Auto ([Scope]), but memory, which is Off or On. Default is On for
// memory and Auto for the others. On never degrades: a layer that can't be had is an
// error. Auto means
//
//	worker  always acquired
//	flock   acquired; skipped when it is unavailable or fails for another reason than
//	        contention, such as ENOLCK, or a file of another user. Contention waits. A
//	        process that is short of descriptors or memory fails.
//	poll    acquired when flock was skipped or is off; skipped when flock is held.
//	        There is no layer below it: when it fails, the call fails.
//
// A process that skipped flock excludes those alone that skip it too. Where flock works
// for some and not for others, say On, or say Off to all.
//
// With poll On and flock held, flock has already put all who use it in order. Who
// holds the directory then does not use flock, and the call fails at once with
// [ErrLockUnavailable].
//
// [Info] says what each layer came to; the callbacks and the result carry it. Before
// acquisition an Auto layer shows as on, and can turn to skipped.
//
// # Callbacks
//
// The predicate runs once before waiting, and once after every layer was handled:
// another may have done the work meanwhile. The action runs if both said true.
// Otherwise OnCheckFailed runs, after everything was released. [State] says where a
// call is:
//
//	predicate-before ──▶ predicate-after ──▶ executed
//	       │ false, or        │ false
//	       │ timeout          ▼
//	       └────────────▶ a result in that state, or in the state timeout
//
// # Waiting
//
// In the process, waiters are served in the order in which they came, in front of the
// flock and the poll layer too, so that one of a process meets the other processes.
// The kernel and the poll layer promise no order between processes.
//
// Waiting for flock costs one sleeping thread for each key, however many wait. A
// system has no way to end that sleep, so when a context ends, its caller returns at
// once, and the thread sleeps on until the lock is free. It serves whoever waits by
// then; if nobody does, it gives the lock up at once. Another attempt that falls into
// that instant finds the lock held.
//
// A timeout ([WithTimeout], [WithTimeoutResult]) is for all layers together. Zero is
// one attempt at each layer, without any sleep. Without a timeout, the context alone
// ends the wait. The wait, the stale time of the poll layer and the work are three
// things, and none bounds another.
//
// # Files
//
// A key's file is in the directory of [WithDir], or of LOCKFX_LOCK_DIR, or of
// LOQKIT_LOCK_DIR, or lockfx-<uid> (0700) in the system's directory for temporary
// files. Its name is the beginning of the key for people, and a SHA-256 of namespace
// and key. The poll layer's directory has the suffix ".lock". [LockFile] tells the
// path, and [WithFile] sets it, so that other programs can lock the same:
//
//	flock /run/backup rsync ...                         excludes the flock layer of WithFile("/run/backup")
//	lockfile.lock("/run/reports", { realpath: false })  excludes the poll layer of WithFile("/run/reports")
//
// The second needs [Scope]{Flock: Off}: by default flock is held and poll skipped.
//
// A lock file is 0600, is never removed and says nothing by being there: after a crash
// the kernel has unlocked it. Removing one by hand is safe while nobody holds it. A
// symbolic link at the path, and a file or directory of another user, are refused.
// Up to 64 files stay open for the next time; no child process inherits them.
//
// # Keys
//
// A key is any string. Without one, it is the SHA-256, in hex, of the input as
// json.Marshal writes it: fields in their order, keys of maps sorted. An input that
// json.Marshal refuses, or would not write whole, needs [WithKey]: it has an unexported
// field, or two fields that JSON calls the same, or text that is not valid UTF-8, or
// embeds beside other fields what writes itself, such as a time.Time.
//
// # The poll layer
//
// Its holder refreshes the directory's mtime at half of the stale time (10 s unless
// [WithStale] says otherwise), and a directory that was not refreshed for longer can
// be taken by others. A holder that could not refresh in time, or finds the directory
// changed, has lost the lock: the action's context ends with a [LostError], and so
// does the call. A loss can't stop a machine instruction; what must not be written
// twice needs a fencing token, and so package fxlock.
//
// Staleness is judged by the wall clocks of those who share the directory. A stale
// lock is broken such that two contenders never both get it; package polldir tells
// how. proper-lockfile itself removes what it saw to be stale without looking again.
// After breaking a lock, a call therefore waits for 20 ms and makes sure of its own,
// unless its timeout is zero.
//
// # Containers and networks
//
// The layers on files exclude those who see the same directory on the same host.
// Locks on a network file system are as good as that file system; hosts need a lock
// service, such as package fxlock with a store between them.
package layered
