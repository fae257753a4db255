// Package flock takes the system's lock on a file for one process: flock(2), or
// LockFileEx on Windows.
//
// The system's lock belongs to an open file, so a descriptor that is kept open
// would be granted twice within a process. Therefore a queue in the process stands
// in front of it:
//
//	goroutines ──▶ queue, one for each path ──▶ the first alone meets the kernel
//
// A wait in the kernel can't be ended from outside: closing the descriptor leaves
// it asleep. So it sleeps in a goroutine (and thread) of its own, at most one for
// each path, and serves whoever is first in the queue when it wakes. A caller whose
// context ends leaves at once. If nobody is there any more, the thread gives the
// lock up the moment it gets it. Of such threads there are a few; on all further paths
// the first in the queue looks again and again, without a thread or a descriptor.
//
// The system locks a file, and those who come go by its path. So whoever got a lock
// makes sure that the path leads to the file that is locked. While it is held, that is
// up to the holder: see [Lock.InPlace].
package flock

import (
	"context"
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/lockfx/lockfx/layered/internal/fifo"
	"github.com/lockfx/lockfx/layered/internal/pace"
)

const (
	// maxParked bounds the threads that sleep in the kernel.
	maxParked = 32
	// longestTurn is what a process may have of a path before those look who have no
	// thread.
	longestTurn = time.Second
)

// Files is a process's view of its lock files. The zero Files is ready. All methods are
// safe for concurrent use.
//
// Two Files in one process still exclude each other, by the kernel.
type Files struct {
	// OpenFile opens a lock file; nil means Open.
	OpenFile func(path string) (File, error)

	queue  fifo.Set[string]
	looks  pace.Looks
	mu     sync.Mutex
	idle   idleFiles        // guarded by mu
	parked map[string]*park // guarded by mu
	asleep int              // guarded by mu: threads, those included that sleep on a file that is gone
}

// Lock is a lock that is held.
type Lock struct {
	files  *Files
	path   string
	file   File
	opened bool
	turn   pace.Turn
}

// Lock waits for the lock on the file at path and takes it. It returns the cause of
// ctx's end if that came first, or why the system refused; then nothing is held.
func (f *Files) Lock(ctx context.Context, path string) (Lock, error) {
	if err := f.queue.Lock(ctx, path); err != nil {
		return Lock{}, err
	}
	return f.take(path, &waiting{ctx: ctx, files: f, path: path})
}

// TryLock makes one attempt that does not wait. It returns fifo.ErrBusy if another
// holds the lock, in this process or outside.
//
// Whoever gives the lock up, since nobody waits for it any more, or to remove the file,
// holds it for that instant, and an attempt can meet it.
func (f *Files) TryLock(path string) (Lock, error) {
	if !f.queue.TryLock(path) {
		return Lock{}, fifo.ErrBusy
	}
	return f.take(path, nil)
}

// Opened reports whether the file was opened for this lock, and not kept from the last
// time.
func (l Lock) Opened() bool { return l.opened }

// InPlace reports whether the path still leads to the file that is locked. Where it does
// not, since the file or its directory was removed, moved or replaced, those who come
// lock another one.
func (l Lock) InPlace() (bool, error) { return l.file.IsAt(l.path) }

// Unlock gives the lock back. The file stays, and stays open for the next time.
func (l Lock) Unlock() error {
	defer l.files.queue.Unlock(l.path)
	if err := l.file.Unlock(); err != nil {
		_ = l.file.Close() // which unlocks
		return err
	}
	l.files.keep(l.path, l.file, l.turn.End())
	return nil
}

// take takes the kernel's lock for whoever has the turn. If another holds it, w waits,
// unless it is nil.
func (f *Files) take(path string, w *waiting) (_ Lock, err error) {
	defer func() {
		w.end()
		if err != nil {
			f.queue.Unlock(path)
		}
	}()
	for met := false; ; {
		file, turn, opened, err := f.open(path)
		if err != nil {
			return Lock{}, err
		}
		if err := w.stepBack(turn); err != nil {
			f.keep(path, file, turn)
			return Lock{}, err
		}
		ok, err := file.TryLock()
		if err == nil && !ok {
			met = true
			if file, err = f.busy(path, file, w); err != nil {
				return Lock{}, err
			}
			if file == nil {
				continue
			}
		}
		var there bool
		if err == nil {
			// Somebody may have removed or replaced the file since it was opened, and
			// the others would then lock another one.
			there, err = file.IsAt(path)
		}
		if err == nil && there {
			return Lock{f, path, file, opened, turn.Begin(met)}, nil
		}
		_ = giveUp(file)
		if err != nil {
			return Lock{}, err
		}
	}
}

// busy deals with a file that another holds. It returns it when it is locked, or none
// when it is time to open the path again.
func (f *Files) busy(path string, file File, w *waiting) (File, error) {
	if w != nil {
		return w.wait(file)
	}
	if at, err := file.IsAt(path); err == nil && !at {
		return nil, file.Close() // what its holder has is not at the path
	}
	f.keep(path, file, pace.Turn{})
	return nil, fifo.ErrBusy
}

// Unavailable reports whether err says that this system, or this file system, has no
// lock for anybody. What it refuses to this process alone others may have meanwhile.
func Unavailable(err error) bool {
	var call *os.SyscallError
	return errors.As(err, &call) && call.Syscall == lockCall &&
		(errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.ENOLCK) || errors.Is(err, syscall.EINVAL))
}

// Remove removes the file at path, unless somebody holds its lock: then it returns
// fifo.ErrBusy. Whoever waits for it meanwhile, in whatever process, sees that it is gone,
// and makes another one.
func (f *Files) Remove(path string) error {
	if !f.queue.TryLock(path) {
		return fifo.ErrBusy
	}
	defer f.queue.Unlock(path)
	file, _, _, err := f.open(path)
	if err != nil {
		return err
	}
	defer giveUp(file) //nolint:errcheck // closing it unlocks it as well
	ok, err := file.TryLock()
	if err == nil && !ok {
		err = fifo.ErrBusy
	}
	if err == nil {
		ok, err = file.IsAt(path)
	}
	if err != nil || !ok {
		return err
	}
	return os.Remove(path)
}

// Waiting returns how many of this process wait for the lock on path, behind the
// one that is first.
func (f *Files) Waiting(path string) int { return f.queue.Waiting(path) }

// giveUp unlocks before it closes: a child that is just being started shares the
// descriptor until it runs its program, and so long closing ours frees nothing.
func giveUp(file File) error {
	return errors.Join(file.Unlock(), file.Close())
}
