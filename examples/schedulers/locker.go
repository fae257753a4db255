package schedulers

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-co-op/gocron/v2"
	"go.uber.org/fx"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

// Locker lets one scheduler at a time run a job: it has a lock for each name of a job,
// which is the key. It is safe for concurrent use.
//
// gocron tells the job nothing of its lease: one that goes on after a loss may overlap
// with another replica's, and has no token to be refused by. A [fxlock.Body] has both.
type Locker struct {
	opts []fxlock.Option

	mu    sync.Mutex // guards what follows
	locks map[string]*fxlock.Lock
}

var _ gocron.Locker = (*Locker)(nil)

// NewLocker returns a Locker whose locks have opts, say [fxlock.WithStore],
// [fxlock.WithTTL] and [fxlock.MinHold]. The application's stop disposes of them.
func NewLocker(lc fx.Lifecycle, opts ...fxlock.Option) *Locker {
	l := &Locker{opts: opts, locks: map[string]*fxlock.Lock{}}
	lc.Append(fx.StopHook(l.close))
	return l
}

// Lock acquires the lock of a job, or says who has it.
func (l *Locker) Lock(ctx context.Context, job string) (gocron.Lock, error) {
	lock, err := l.of(job)
	if err != nil {
		return nil, err
	}
	ok, err := lock.Acquire(ctx)
	if err == nil && !ok {
		err = &lockfx.NotAcquiredError{Key: job}
	}
	if err != nil {
		return nil, err
	}
	return held{lock}, nil
}

func (l *Locker) of(job string) (*fxlock.Lock, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if lock, ok := l.locks[job]; ok {
		return lock, nil
	}
	lock, err := fxlock.New(append([]fxlock.Option{fxlock.WithKey(job)}, l.opts...)...)
	if err == nil {
		l.locks[job] = lock
	}
	return lock, err
}

// close disposes of all locks. It is for a scheduler that was stopped.
func (l *Locker) close(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, lock := range l.locks {
		errs = append(errs, lock.Dispose(ctx))
	}
	l.locks = map[string]*fxlock.Lock{} // new ones for another start
	return errors.Join(errs...)
}

// held is a lock that a scheduler holds while a job runs.
type held struct{ lock *fxlock.Lock }

// Unlock gives the lock back.
func (h held) Unlock(ctx context.Context) error {
	ok, err := h.lock.Release(ctx)
	if err == nil && !ok {
		err = fmt.Errorf("unlock %q: %w", h.lock.Key(), lockfx.ErrLost)
	}
	return err
}
