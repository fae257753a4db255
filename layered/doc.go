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
//	flock   acquired; skipped if the system or the file system has no flock, which is so
//	        for every process: ENOSYS, EOPNOTSUPP, ENOLCK or EINVAL of flock(2).
//	        Contention waits. Any other failure is an error: what this process is
//	        refused, another one may hold. With [WithFile], Auto means On.
//	poll    acquired when flock was skipped or is off; skipped when flock is held.
//	        There is no layer below it: when it fails, the call fails.
//
// A process with flock Off excludes only those that have it Off too.
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
// In a process, waiters are served first come, first served, also for the flock and the
// poll layer: one goroutine per key competes with other processes. Between processes no
// order is promised. A process that takes a key again and again pauses for some
// milliseconds after each turn (150 ms of the poll layer, 1 s of flock), so that the others
// get theirs.
//
// Up to 32 keys are waited for by a thread each, which sleeps in flock(2). For further
// keys, and for the poll layer, the wait is a timer: an attempt every 15 ms, and fewer
// when many wait, 2000 a second at most in a process. A sleeping thread can't be woken, so
// when a context ends, its caller returns at once, and the thread sleeps until the lock is
// free. It serves the next waiter, or gives the lock up. Another attempt at that instant
// finds the lock held.
//
// A timeout ([WithTimeout], [WithTimeoutResult]) is for all layers together. Zero is
// one attempt at each layer, without any sleep. Without a timeout, the context alone
// ends the wait. The wait, the stale time of the poll layer and the work are three
// things, and none bounds another.
//
// # Files
//
// A key's file is in the directory of [WithDir], or of LOCKFX_LOCK_DIR, or of
// LOQKIT_LOCK_DIR, or in /tmp/lockfx-<uid> (0700; on Windows in the local application
// data). TMPDIR and the working directory have no influence. A process whose /tmp is not
// the system's, such as a service with PrivateTmp=yes, gets an error there and needs
// a directory that all its peers see. The file's name is the beginning of the key and a
// SHA-256 of namespace and key. The poll layer's directory has the suffix ".lock".
//
// [WithFile] sets the path, so that other programs can lock the same:
//
//	flock /run/backup rsync ...                         excludes the flock layer of WithFile("/run/backup")
//	lockfile.lock("/run/reports", { realpath: false })  excludes the poll layer of WithFile("/run/reports")
//
// The second needs [Scope]{Flock: Off}: by default flock is held and poll skipped.
//
// A lock file says nothing by being there: after a crash the kernel has unlocked it. A
// file set by WithFile is never removed. In a directory, lock files that are not held are
// removed when there are more than about a thousand; flock(1) would not notice, so a
// path that [LockFile] returned is for looking, and one to share needs WithFile. Up to 64
// files stay open for the next time; no child process inherits them.
//
// # Users
//
// By default a lock is for one user and root. The modes say who else shares it:
//
//	directory 0770 or 2770, of a group   the users of the group. Files are made 0660 and
//	                                     for the group, whatever the umask
//	file 0660, of a group                the users of the group: for WithFile in a
//	                                     directory of root, or in one that is sticky
//
//	# install -d -m 2770 -g ops /var/lib/backup/locks
//	# install -m 660 -g ops /dev/null /run/lock/backup
//
// What root makes in a directory of another user belongs to that user. Anything else that
// belongs to another user, a symbolic link, and a file that everybody can write to, are
// errors, and never count as held or as skipped.
//
// # Losing a lock
//
// The kernel locks a file, and other processes go by its path. If the file or its
// directory is removed, moved or replaced during a hold, the next process locks another
// file, and nothing can prevent that. The holder checks the path every second and when
// the action returns: then it has lost the lock. The action's context ends with a
// [LostError], and the call returns it. So two holders are possible for a second, and
// never unnoticed. Do not clean up a lock directory while its locks are in use. In the
// default directory, a file that is held looks new, so that tools that clean /tmp by age
// spare it.
//
// # Keys
//
// A key is any string. Without one, it is the SHA-256, in hex, of the input as
// json.Marshal writes it: fields in their order, keys of maps sorted. That is for plain
// data. An input needs [WithKey] if json.Marshal refuses it, or leaves something out of it
// unseen, or might write it differently the next time:
//
//   - an unexported field, two fields that JSON calls the same, text that is not UTF-8
//   - a type with a MarshalJSON or MarshalText method, except time.Time, netip.Addr,
//     netip.AddrPort and netip.Prefix; a map with keys of any such type; a field with
//     omitzero whose type has an IsZero method, except these
//   - a time.Time in the local zone, which TZ sets: use its UTC
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
