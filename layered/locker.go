package layered

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/layered/internal/fifo"
)

// name is what the in-process layers lock.
type name struct{ namespace, key string }

// Locker is one memory layer, with the defaults of the calls that use it: say one
// for each application. The zero Locker is ready, as [New] without options makes it.
// All methods are safe for concurrent use.
type Locker struct {
	defaults *settings // nil for those of the package
	memory   fifo.Set[name]

	mu     sync.Mutex
	closed bool                // guarded by mu
	visits map[*visit]struct{} // guarded by mu: the calls under way
	left   chan struct{}       // guarded by mu: closed when the last of them ended; nil unless Close waits
}

// shared is the Locker of calls that name none.
var shared = new(Locker)

// New returns a Locker. An error matches [lockfx.ErrConfig] and lists all faults.
func New(opts ...LockerOption) (*Locker, error) {
	s := defaults()
	for i, o := range opts {
		s.add(i, o)
	}
	if err := errors.Join(s.faults...); err != nil {
		return nil, err
	}
	return &Locker{defaults: &s}, nil
}

// settings returns a copy of the defaults.
func (l *Locker) settings() settings {
	if l.defaults == nil {
		return defaults()
	}
	return *l.defaults
}

// visit is one call of WithLock.
type visit struct {
	locker  *Locker
	caller  context.Context // as WithLock was given it
	cancel  context.CancelCauseFunc
	waiting bool // guarded by Locker.mu: it waits for layers, and runs nothing
}

// enter begins a call. The context that it returns ends with the call.
func (l *Locker) enter(ctx context.Context) (context.Context, *visit, error) {
	caller := ctx
	ctx, cancel := context.WithCancelCause(caller)
	v := &visit{locker: l, caller: caller, cancel: cancel}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		cancel(nil)
		return nil, nil, lockfx.ErrDisposed
	}
	if l.visits == nil {
		l.visits = make(map[*visit]struct{})
	}
	l.visits[v] = struct{}{}
	return ctx, v, nil
}

// wait notes whether the call waits. It returns ErrDisposed if the Locker was closed
// before or while it waited.
func (v *visit) wait(waiting bool) error {
	v.locker.mu.Lock()
	defer v.locker.mu.Unlock()
	v.waiting = waiting
	if v.locker.closed {
		return lockfx.ErrDisposed
	}
	return nil
}

func (v *visit) leave() {
	v.cancel(nil)
	l := v.locker
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.visits, v)
	if len(l.visits) == 0 && l.left != nil {
		close(l.left)
		l.left = nil
	}
}

// Close refuses new calls, ends those that wait, and waits for those that run
// callbacks. If ctx ends first, it cancels their contexts, and returns an error
// that says how many still run; each of them releases its lock when it returns.
// What is refused or ended matches [lockfx.ErrDisposed].
//
// Close is idempotent. Only the memory layer is the Locker's own: the others are
// shared by the process and need no closing.
func (l *Locker) Close(ctx context.Context) error {
	left := l.refuse()
	select {
	case <-left:
		return nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.visits)
	for v := range l.visits {
		v.cancel(lockfx.ErrDisposed)
	}
	if n == 0 {
		return nil
	}
	return fmt.Errorf("close the locker: %d calls still run: %w", n, context.Cause(ctx))
}

// refuse closes the door, and returns a channel that is closed when all have left.
func (l *Locker) refuse() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for v := range l.visits {
		if v.waiting {
			v.cancel(lockfx.ErrDisposed)
		}
	}
	if l.left == nil {
		l.left = make(chan struct{})
		if len(l.visits) == 0 {
			left := l.left
			close(left)
			l.left = nil
			return left
		}
	}
	return l.left
}

// Open lets a closed Locker be used again, when an application is started again.
func (l *Locker) Open() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = false
}
