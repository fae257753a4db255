// Package hooks is the fx.Lifecycle of one run: ordinary fx constructors append
// to it, and their hooks start before the body and stop after it.
//
// It differs from an application's lifecycle on purpose. A hook that has nothing
// to start is stopped even if something built after it failed. And since a body
// may resolve more by hand, hooks are appended and started until the stop.
package hooks

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"go.uber.org/fx"

	"github.com/lockfx/lockfx"
)

// Lifecycle implements fx.Lifecycle. It is safe for concurrent use.
type Lifecycle struct {
	patience time.Duration
	turn     chan struct{} // holds a token while hooks are started or stopped
	broken   error         // why nothing is started any more; belongs to who has the turn

	mu      sync.Mutex // guards what follows
	waiting []fx.Hook  // appended, not started
	running []fx.Hook  // to be stopped, the last one first
}

var _ fx.Lifecycle = (*Lifecycle)(nil)

var (
	errBusy   = fmt.Errorf("%w: another goroutine, or a hook that resolves by hand, is still starting hooks", lockfx.ErrTimeout)
	errExited = errors.New("OnStart hook: ended its goroutine")
	errOver   = errors.New("the run is over")
)

// New returns a lifecycle without hooks. Who wants to start hooks while another
// goroutine does waits no longer than patience.
func New(patience time.Duration) *Lifecycle {
	return &Lifecycle{patience: patience, turn: make(chan struct{}, 1)}
}

// Append adds a hook. One without OnStart needs no Start to be stopped.
func (l *Lifecycle) Append(h fx.Hook) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, h)
}

// Start runs the OnStart of the hooks that were appended since the last call, in
// order, as long as ctx lasts. When it returns nil all of them have started, whoever
// started them. After one that failed nothing is started any more: each call returns
// that error.
func (l *Lifecycle) Start(ctx context.Context) error {
	if err := l.takeTurn(ctx); err != nil {
		return err
	}
	defer l.leaveTurn()
	for l.broken == nil {
		h, ok := l.next()
		if !ok {
			return nil
		}
		l.broken = errExited
		if l.broken = start(ctx, h); l.broken == nil {
			l.started(h)
		}
	}
	return l.broken
}

func (l *Lifecycle) takeTurn(ctx context.Context) error {
	select {
	case l.turn <- struct{}{}:
		return nil
	default:
	}
	bounded, cancel := context.WithTimeoutCause(ctx, l.patience, errBusy)
	defer cancel()
	select {
	case l.turn <- struct{}{}:
		return nil
	case <-bounded.Done():
		return context.Cause(bounded)
	}
}

func (l *Lifecycle) leaveTurn() { <-l.turn }

func (l *Lifecycle) next() (fx.Hook, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		return fx.Hook{}, false
	}
	h := l.waiting[0]
	l.waiting = l.waiting[1:]
	return h, true
}

func (l *Lifecycle) started(h fx.Hook) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running = append(l.running, h)
}

// Stop runs the OnStop of every started hook in reverse order, and of every hook
// that has nothing to start. All of them run, whatever the others do; their errors
// and panics are joined. Nothing is started afterwards.
func (l *Lifecycle) Stop(ctx context.Context) error {
	busy := l.takeTurn(ctx)
	if busy == nil {
		defer l.leaveTurn()
		l.broken = errOver
	}
	return errors.Join(busy, l.stopAll(ctx))
}

func (l *Lifecycle) stopAll(ctx context.Context) (err error) {
	done := false
	defer func() { // a hook ended this goroutine
		if !done {
			_ = l.stopAll(ctx)
		}
	}()
	for {
		h, ok := l.last()
		if !ok {
			done = true
			return err
		}
		err = errors.Join(err, contain(ctx, "OnStop", h.OnStop))
	}
}

func (l *Lifecycle) last() (fx.Hook, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.waiting) > 0 { // those after a failed start
		h := l.waiting[len(l.waiting)-1]
		l.waiting = l.waiting[:len(l.waiting)-1]
		if h.OnStart == nil {
			return h, true
		}
	}
	if len(l.running) == 0 {
		return fx.Hook{}, false
	}
	h := l.running[len(l.running)-1]
	l.running = l.running[:len(l.running)-1]
	return h, true
}

func start(ctx context.Context, h fx.Hook) error {
	if cause := context.Cause(ctx); cause != nil && h.OnStart != nil {
		return cause
	}
	return contain(ctx, "OnStart", h.OnStart)
}

func contain(ctx context.Context, what string, f func(context.Context) error) (err error) {
	if f == nil {
		return nil
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%s hook: %w", what, &lockfx.PanicError{Value: r, Stack: debug.Stack()})
		}
	}()
	if err := f(ctx); err != nil {
		return fmt.Errorf("%s hook: %w", what, err)
	}
	return nil
}
