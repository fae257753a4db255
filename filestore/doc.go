// Package filestore is the lockfx.Store that lives in a directory: it excludes the
// processes of one host from each other, and needs nothing but a file system.
//
//	store, err := filestore.New("/var/lib/reports/locks")
//
// # What is in the directory
//
//	guard-0 ... guard-f    empty files; who decides about a key locks one of them
//	guard-mark             the same, for mark.json
//	mark.json              the greatest token ever issued here
//	lease-nightly-5c7d….json    one for each key in use: a readable part and the
//	                            SHA-256 of the key
//
// A lease is a text that people can read:
//
//	$ cat lease-nightly-*.json
//	{
//	  "format": "lockfx lease 1",
//	  "content": {
//	    "key": "nightly",
//	    "held": true,
//	    "token": "1798872245004211",
//	    "previous": "1798870445003907",
//	    "holder": "web-1/4711/reports",
//	    "ends": "2027-01-02T06:44:35.004211Z"
//	  },
//	  "sha256": "…"
//	}
//
// This lists what is held, or was when its holder died; compare "ends" with the clock:
//
//	$ grep -l '"held": true' lease-*.json
//	lease-nightly-2a3b62b53ddb9f167b63d22202a360811ba78df015021f704d01ee9abad4169c.json
//
// Looking changes nothing. Changing a file by hand makes it corrupt, since the checksum no
// longer fits.
//
// # Where to put it
//
// Name a real, absolute path, such as /var/lib/reports/locks. A path over a symbolic
// link is refused with [ErrUnsafe], except for links in the root directory: when a
// deployment switches "current", the processes of before and after would each have a
// directory of their own. A directory that is moved, removed or replaced is lost to the
// processes that opened it. Their calls fail from then on, until they open the store
// again, and a holder learns it from its next heartbeat; so do it while nothing is held.
//
// Give it a disk that jobs can't fill. Without space nothing can be acquired or renewed,
// so leases are lost, and none can be released, so they last until they expire.
//
// # Who may use it
//
// The mode of the directory says so:
//
//	0700   the user who owns it, and root; so [New] makes it
//	0770   the users of its group as well; the set-group-ID bit may be set, the sticky
//	       bit must not
//
// Whatever the umask: the files are readable and writable for those users alone, and what
// root makes there belongs to the owner of the directory. So one run of the service by
// root locks nobody out, and root can inspect and break what the service holds. A
// directory that root makes belongs to the owner of its parent. To share a directory
// that is in use, change what is in it as well:
//
//	$ chgrp -R jobs . && chmod -R g+rwX .
//
// # How it decides
//
// Whether a file exists says nothing, and no process identity is ever compared: a lease
// is what a record says, judged by the clock, and its owner is whoever knows the token.
// Each decision is a short section under the guard of the key, of which there are 16:
//
//	lock guard-N ─▶ read the clock ─▶ read the record ─▶ held and unexpired? ─▶ refuse
//	                                                          │no
//	     unlock ◀─ synchronize ◀─ write the record ◀─ raise the mark (under guard-mark)
//
// The lock is flock(2), on Windows LockFileEx. The system drops it when its process
// dies, so a crash blocks nobody for longer than the lease it held. A process that is
// stopped in the middle of a section, by SIGSTOP say, blocks the keys that share the
// guard, one in 16: calls for those last until the deadline of their ctx, or for 5 s if
// it has none, and return an error that names the guard. All other keys can be used; an
// acquisition takes 0.1 s longer while the stopped process has guard-mark too. lslocks(8)
// shows who has a guard. Guard files are never removed. If a person removes one, the next section notices
// that it locked a file that is no longer there and takes the new one; only somebody who
// is inside a section at that moment goes on unprotected, so don't.
//
// A file is replaced by a temporary one that is written, synchronized (fsync) and
// renamed over it, and then the directory is synchronized. A crash at any byte leaves
// the old record or the new one, and at most one temporary file for a key, which the
// next write replaces. An acquisition takes three synchronizations and a renewal or a
// release two, which is milliseconds on a common disk. So this is a store for jobs, not
// for thousands of leases a second.
//
// # Its clock
//
// The clock is the wall clock of the host, since it is the one that all processes share
// and that goes on across a reboot. A step of the clock is felt: stepped back, leases
// last longer by as much; stepped forward, they end early, and a holder that was not
// told yet is stopped by its own lifecycle, which watches the wall clock too, and by
// whatever checks its token. A lease that was taken while the clock was a year ahead lasts
// a year: Break frees it.
//
// # Tokens
//
// The token of a grant is the greater of
//
//	the last known token plus 1
//	the clock in microseconds since 1970
//
// and the last known one is the greatest of the key's record, the mark, and what this
// process has issued itself. The mark is raised before the record is written, unless a
// process was stopped that keeps guard-mark. It is
// enough that one of these survives: a record that was deleted is covered by the mark,
// and a mark that was deleted is made again from the records. If all is deleted, the
// clock remains, which has passed every old token unless it was stepped back, or more
// than one lease was granted in each microsecond.
//
// # Restart, and unused keys
//
// There is nothing to recover after a restart of the process or of the host: leases
// that have not expired hold, others are taken in one call.
//
// The record of a key stays when its lease is over, about 300 bytes in one block of the
// file system. An hour later it is removed, by some later acquisition of any key in the
// directory: each looks at most at 1,024 files, once an hour, or more often if
// there are more files. Its token lives on in the mark. What stays for ever is 18 files
// of which 17 are empty.
//
// # Corrupt files
//
// A record or a mark that is cut off, changed, or of another key is an error that
// matches [ErrCorrupt] and names the file, for every call that needs it. It is never
// taken for a free key, nor for a held one, and no token is issued on its account. It
// takes a decision of a person:
//
//   - A record: [Store.Break] frees the key. To remove the file by hand does the same,
//     and is the way if mark.json is missing too, since Break can't tell then which
//     token to go on from. First make sure that the holder is gone, since its lease is
//     gone with the record.
//   - mark.json: remove it by hand. The next acquisition makes it again from the
//     records and the clock.
//
// Links, files of users who do not share the directory, and directories that everybody may
// write to are refused with [ErrUnsafe]. The disk being full or read-only, missing permissions and a directory
// that is gone are errors that carry the errno. After an error of Renew or Release the
// outcome may be either; Acquire takes back what it can't report.
//
// # Watching
//
// [Store.Watch] asks the system for news of the directory (by fsnotify): one
// subscription for a store, however many keys, from the first watch until
// [Store.Close]. If the system has none to give, the store looks at the watched records
// ten times a second instead. [WithPolling] does so from the start.
//
// # Limits
//
// One host: the directory must be on a local file system. On NFS and other network file
// systems flock may be local to each client, renamings are cached, clocks differ and no
// news arrive: such a directory does NOT exclude hosts from each other. Containers
// exclude each other if they share the directory and the host's clock.
//
// It is tested on Linux. It is built for macOS, the BSDs and Windows; on Windows file
// owners are not checked, and a directory can't be synchronized.
package filestore
