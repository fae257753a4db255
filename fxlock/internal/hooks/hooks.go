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
	"path"
	"runtime"
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

	mu       sync.Mutex // guards what follows
	waiting  []hook     // appended, not started
	running  []hook     // to be stopped, the last one first
	stopping uintptr    // the place of the hook whose OnStop is under way, or 0
	failure  error      // of those that were stopped
}

// hook is an fx.Hook, and the instruction behind the call that appended it.
type hook struct {
	fx.Hook
	pc uintptr
}

// place says who appended a hook.
func place(pc uintptr) string {
	frame, _ := runtime.CallersFrames([]uintptr{pc}).Next()
	return fmt.Sprintf("%s (%s:%d)", path.Base(frame.Function), path.Base(frame.File), frame.Line)
}

var _ fx.Lifecycle = (*Lifecycle)(nil)

var (
	errBusy   = fmt.Errorf("%w: another goroutine, or a hook that resolves by hand, is still starting hooks", lockfx.ErrTimeout)
	errExited = errors.New("OnStart hook: ended its goroutine")
	errOver   = errors.New("the run is over")

	errStopExited = errors.New("OnStop hook: ended its goroutine")
)

// New returns a lifecycle without hooks. Who wants to start hooks while another
// goroutine does waits no longer than patience.
func New(patience time.Duration) *Lifecycle {
	return &Lifecycle{patience: patience, turn: make(chan struct{}, 1)}
}

// Append adds a hook. One without OnStart needs no Start to be stopped.
func (l *Lifecycle) Append(h fx.Hook) {
	var pcs [1]uintptr
	runtime.Callers(2, pcs[:])
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, hook{h, pcs[0]})
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
		if l.broken = start(ctx, h.Hook); l.broken == nil {
			l.started(h)
		}
	}
	if l.broken == errOver { //nolint:errorlint // what was built since the stop has nobody else to stop it
		l.stopAll(context.WithoutCancel(ctx))
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

func (l *Lifecycle) next() (hook, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		return hook{}, false
	}
	h := l.waiting[0]
	l.waiting = l.waiting[1:]
	return h, true
}

func (l *Lifecycle) started(h hook) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running = append(l.running, h)
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
