package polldir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/lockfx/lockfx/layered/internal/fifo"
	"github.com/lockfx/lockfx/layered/internal/pace"
)

var (
	errTaken   = errors.New("another has taken it")
	errExpired = errors.New("it was not refreshed in time")
)

// Lock is a lock directory that is held, and its heartbeat.
type Lock struct {
	dirs  *Dirs
	path  string
	stale time.Duration
	broke bool      // a stale lock was broken for it
	turn  pace.Turn // that this hold belongs to

	// self and asked belong to the heartbeat while it runs.
	self  fs.FileInfo // the directory as it was left
	asked time.Time   // before the last refresh that succeeded

	stop     chan struct{} // closed by Unlock
	stopped  chan struct{} // closed when the heartbeat has ended
	deadline *time.Timer   // tells the loss even when the file system never answers
	lost     func(error)

	mu   sync.Mutex
	over bool  // guarded by mu: lost, or given back
	err  error // guarded by mu: why it was lost
}

// claim makes the directory that was just made ours: its mtime is then our clock's,
// whatever the clock of the file system is. A process that was paused for too long
// since it asked gets fifo.ErrBusy: the directory may be another's by now.
func claim(path string, stale time.Duration, asked time.Time) (*Lock, error) {
	l := &Lock{path: path, stale: stale, asked: asked}
	if l.expired() {
		return nil, fifo.ErrBusy
	}
	err := l.touch(asked)
	switch {
	case errors.Is(err, errTaken), errors.Is(err, fs.ErrNotExist), err == nil && l.expired():
		return nil, fifo.ErrBusy
	case err != nil:
		_ = os.Remove(path)
		return nil, err
	}
	return l, nil
}

// touch sets the directory's mtime to asked, and notes how the file system keeps it.
func (l *Lock) touch(asked time.Time) error {
	// proper-lockfile sees milliseconds, and takes a lock whose mtime it did not
	// write itself for another's.
	mtime := asked.Truncate(time.Millisecond)
	if err := os.Chtimes(l.path, mtime, mtime); err != nil {
		return err
	}
	there, err := os.Lstat(l.path)
	if err != nil {
		return err
	}
	const coarsest = 2 * time.Second // of file systems in use
	if d := there.ModTime().Sub(mtime); d.Abs() > coarsest || l.self != nil && !os.SameFile(l.self, there) {
		return errTaken
	}
	l.self, l.asked = there, asked
	return nil
}

// settle sleeps for a moment and returns fifo.ErrBusy if the directory is not ours
// after it.
func (l *Lock) settle(ctx context.Context) error {
	if err := pace.Sleep(ctx, settle); err != nil {
		_ = l.remove()
		return err
	}
	if l.expired() || l.check() != nil {
		return fifo.ErrBusy
	}
	return nil
}

// check returns nil if the directory at path is still the one that we left.
func (l *Lock) check() error {
	there, err := os.Lstat(l.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %s is gone", errTaken, l.path)
	case err != nil:
		return err
	case !os.SameFile(l.self, there) || !there.ModTime().Equal(l.self.ModTime()):
		return fmt.Errorf("%w: %s is not as we left it", errTaken, l.path)
	}
	return nil
}

// Unlock ends the heartbeat and removes the directory if it is still ours. It
// returns why the lock was lost, if it was; it never touches the lock of the next
// holder.
func (l *Lock) Unlock() error {
	defer l.dirs.queue.Unlock(l.path)
	defer func() { l.dirs.turns.Keep(l.path, l.turn.End()) }()
	close(l.stop)
	<-l.stopped
	l.deadline.Stop()

	l.mu.Lock()
	defer l.mu.Unlock()
	defer func() { l.over = true }()
	if l.expired() {
		l.loseLocked(errExpired)
	}
	if l.over {
		return l.err
	}
	err := l.remove()
	if errors.Is(err, errTaken) {
		l.loseLocked(err)
	}
	return err
}

func (l *Lock) remove() error {
	if err := l.check(); err != nil {
		return err
	}
	return os.Remove(l.path)
}

func (l *Lock) lose(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.loseLocked(err)
}

// loseLocked calls lost with the mutex held, so that whoever returned from Unlock
// knows that it was told.
func (l *Lock) loseLocked(err error) {
	if l.over {
		return
	}
	l.over, l.err = true, err
	l.lost(err)
}
