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
// lock up the moment it gets it.
package flock

import (
	"context"
	"sync"

	"github.com/lockfx/lockfx/layered/internal/fifo"
)

// Files is a process's view of its lock files. The zero Files is ready. All methods
// are safe for concurrent use.
//
// Two Files in one process still exclude each other, by the kernel.
type Files struct {
	// OpenFile opens a lock file; nil means Open.
	OpenFile func(path string) (File, error)

	turns  fifo.Set[string]
	mu     sync.Mutex
	idle   idleFiles        // guarded by mu
	parked map[string]*park // guarded by mu
}

// Lock is a lock that is held.
type Lock struct {
	files *Files
	path  string
	file  File
}

// Lock waits for the lock on the file at path and takes it. It returns the cause of
// ctx's end if that came first, or why the system refused; then nothing is held.
func (f *Files) Lock(ctx context.Context, path string) (Lock, error) {
	if err := f.turns.Lock(ctx, path); err != nil {
		return Lock{}, err
	}
	return f.take(path, func(file File) (File, error) { return f.wait(ctx, path, file) })
}

// TryLock makes one attempt that does not wait. It returns fifo.ErrBusy if another
// holds the lock, in this process or outside.
//
// A thread that gives the lock up, since nobody waits for it any more, holds it for
// that instant, and an attempt can meet it.
func (f *Files) TryLock(path string) (Lock, error) {
	if !f.turns.TryLock(path) {
		return Lock{}, fifo.ErrBusy
	}
	return f.take(path, func(file File) (File, error) {
		f.keep(path, file)
		return nil, fifo.ErrBusy
	})
}

// Unlock gives the lock back. The file stays, and stays open for the next time.
func (l Lock) Unlock() error {
	defer l.files.turns.Unlock(l.path)
	if err := l.file.Unlock(); err != nil {
		_ = l.file.Close() // which unlocks
		return err
	}
	l.files.keep(l.path, l.file)
	return nil
}

// Waiting returns how many of this process wait for the lock on path, behind the
// one that is first.
func (f *Files) Waiting(path string) int { return f.turns.Waiting(path) }

// take takes the kernel's lock for whoever has the turn. If another holds it, busy
// decides what to do, and owns the file that it is given.
func (f *Files) take(path string, busy func(File) (File, error)) (_ Lock, err error) {
	defer func() {
		if err != nil {
			f.turns.Unlock(path)
		}
	}()
	for {
		file, err := f.open(path)
		if err != nil {
			return Lock{}, err
		}
		ok, err := file.TryLock()
		if err == nil && !ok {
			if file, err = busy(file); err != nil {
				return Lock{}, err
			}
		}
		var there bool
		if err == nil {
			// Somebody may have removed or replaced the file since it was opened, and
			// the others would then lock another one.
			there, err = file.IsAt(path)
		}
		if err == nil && there {
			return Lock{f, path, file}, nil
		}
		giveUp(file)
		if err != nil {
			return Lock{}, err
		}
	}
}
