package polldir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/lockfx/lockfx/layered/internal/fifo"
	"github.com/lockfx/lockfx/layered/internal/owner"
	"github.com/lockfx/lockfx/layered/internal/pace"
)

// MinStale is the shortest time after which a lock can count as stale.
const MinStale = 2 * time.Second

const (
	// settle is longer than a contender needs from seeing that a directory is stale
	// to removing it.
	settle = 20 * time.Millisecond
	// again is how long to wait after an attempt that met something odd.
	again = 100 * time.Millisecond
	// longestTurn is what a process may have of a path before the others look.
	longestTurn = 150 * time.Millisecond
)

// Dirs is a process's view of its lock directories. The zero Dirs is ready. All methods are safe for concurrent use.
type Dirs struct {
	queue fifo.Set[string]
	turns pace.Turns
	looks pace.Looks
}

// Lock waits for the lock directory at path and makes it. stale is at least
// MinStale. lost is called at most once, from a goroutine of the lock, when the lock
// is lost. Lock returns the cause of ctx's end if that came first, or why the
// system refused; then nothing is held.
func (d *Dirs) Lock(ctx context.Context, path string, stale time.Duration, lost func(error)) (*Lock, error) {
	if err := d.queue.Lock(ctx, path); err != nil {
		return nil, err
	}
	l, met, err := d.poll(ctx, path, stale)
	return d.held(l, met, err, path, lost)
}

// TryLock makes one attempt, which takes a stale lock and never sleeps. It returns
// fifo.ErrBusy if another holds the lock.
func (d *Dirs) TryLock(path string, stale time.Duration, lost func(error)) (*Lock, error) {
	if !d.queue.TryLock(path) {
		return nil, fifo.ErrBusy
	}
	l, _, err := attempt(path, stale)
	return d.held(l, false, err, path, lost)
}

func (d *Dirs) held(l *Lock, met bool, err error, path string, lost func(error)) (*Lock, error) {
	if err != nil {
		d.queue.Unlock(path)
		return nil, err
	}
	l.dirs, l.turn = d, d.turns.Of(path).Begin(met)
	l.start(lost)
	return l, nil
}

// poll looks until the lock is ours. It reports whether another held it meanwhile.
func (d *Dirs) poll(ctx context.Context, path string, stale time.Duration) (_ *Lock, met bool, _ error) {
	if err := d.turns.Of(path).Give(ctx, longestTurn); err != nil {
		return nil, false, err
	}
	var w *pace.Waiter
	for {
		l, left, err := attempt(path, stale)
		if err == nil && l.broke {
			err = l.settle(ctx)
		}
		if !errors.Is(err, fifo.ErrBusy) {
			return l, w != nil, err
		}
		if w == nil {
			w = d.looks.Begin()
			defer w.End()
		}
		if err := w.Sleep(ctx, left+time.Millisecond); err != nil {
			return nil, true, err
		}
	}
}

// attempt tries to make the directory, and breaks a stale lock for it. When another
// holds it, it returns fifo.ErrBusy and how long that lock can last unrefreshed.
func attempt(path string, stale time.Duration) (_ *Lock, left time.Duration, _ error) {
	broke := false
	for range 2 {
		asked := time.Now()
		err := os.Mkdir(path, 0o700)
		if err == nil {
			l, err := claim(path, stale, asked)
			if err == nil {
				l.broke = broke
			}
			return l, stale, err
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, 0, err
		}
		there, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // given back meanwhile
		}
		if err != nil {
			return nil, 0, err
		}
		if err := acceptable(path, there); err != nil {
			return nil, 0, &fs.PathError{Op: "mkdir", Path: path, Err: err}
		}
		if left = time.Until(there.ModTime()) + stale; left >= 0 {
			return nil, left, fifo.ErrBusy
		}
		if err := breakStale(path, there, stale); err != nil {
			return nil, again, err
		}
		broke = true
	}
	return nil, again, fifo.ErrBusy
}

// acceptable refuses what proper-lockfile would not have made, and what somebody made who
// does not share the lock.
func acceptable(path string, there fs.FileInfo) error {
	if !there.IsDir() {
		return fmt.Errorf("a %v stands there, not a lock's directory: %w", there.Mode().Type(), fs.ErrInvalid)
	}
	return owner.Check(path, there)
}
