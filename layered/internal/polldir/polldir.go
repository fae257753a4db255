package polldir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"time"

	"github.com/lockfx/lockfx/layered/internal/fifo"
)

// MinStale is the shortest time after which a lock can count as stale.
const MinStale = 2 * time.Second

const (
	minLook = 5 * time.Millisecond
	maxLook = 100 * time.Millisecond
	// settle is longer than a contender needs from seeing that a directory is stale
	// to removing it.
	settle = 20 * time.Millisecond
)

// Dirs is a process's view of its lock directories. The zero Dirs is ready. All
// methods are safe for concurrent use.
type Dirs struct {
	turns fifo.Set[string]
}

// Lock waits for the lock directory at path and makes it. stale is at least
// MinStale. lost is called at most once, from a goroutine of the lock, when the lock
// is lost. Lock returns the cause of ctx's end if that came first, or why the
// system refused; then nothing is held.
func (d *Dirs) Lock(ctx context.Context, path string, stale time.Duration, lost func(error)) (*Lock, error) {
	if err := d.turns.Lock(ctx, path); err != nil {
		return nil, err
	}
	l, err := d.poll(ctx, path, stale)
	return d.held(l, err, path, lost)
}

// TryLock makes one attempt, which takes a stale lock and never sleeps. It returns
// fifo.ErrBusy if another holds the lock.
func (d *Dirs) TryLock(path string, stale time.Duration, lost func(error)) (*Lock, error) {
	if !d.turns.TryLock(path) {
		return nil, fifo.ErrBusy
	}
	l, _, err := attempt(path, stale)
	return d.held(l, err, path, lost)
}

func (d *Dirs) held(l *Lock, err error, path string, lost func(error)) (*Lock, error) {
	if err != nil {
		d.turns.Unlock(path)
		return nil, err
	}
	l.dirs = d
	l.start(lost)
	return l, nil
}

func (d *Dirs) poll(ctx context.Context, path string, stale time.Duration) (*Lock, error) {
	for look := minLook; ; look = min(2*look, maxLook) {
		l, left, err := attempt(path, stale)
		if err == nil && l.broke {
			err = l.settle(ctx)
		}
		if !errors.Is(err, fifo.ErrBusy) {
			return l, err
		}
		select {
		case <-time.After(min(jitter(look), left+time.Millisecond)):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// jitter returns a duration from half of d to one and a half of it, so that
// processes that wait for one lock do not look in step.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d) }

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
		if err := acceptable(there); err != nil {
			return nil, 0, &fs.PathError{Op: "mkdir", Path: path, Err: err}
		}
		if left = time.Until(there.ModTime()) + stale; left >= 0 {
			return nil, left, fifo.ErrBusy
		}
		if err := breakStale(path, there, stale); err != nil {
			return nil, maxLook, err
		}
		broke = true
	}
	return nil, maxLook, fifo.ErrBusy
}

// acceptable refuses what proper-lockfile would not have made, or what another user
// can take away under the holder.
func acceptable(there fs.FileInfo) error {
	if !there.IsDir() {
		return fmt.Errorf("a %v stands there, not a lock's directory: %w", there.Mode().Type(), fs.ErrInvalid)
	}
	return ownedByUs(there)
}
