// Package hooks is the fx.Lifecycle of one run: ordinary fx constructors append
// to it, and their hooks start before the body and stop after it.
//
// It differs from an application's lifecycle on purpose: a hook that has nothing
// to start is stopped even if something built after it failed.
package hooks

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.uber.org/fx"
)

// Lifecycle implements fx.Lifecycle. The zero value is ready for use. It is safe
// for concurrent use.
type Lifecycle struct {
	mu      sync.Mutex // guards what follows
	waiting []fx.Hook  // appended, not started
	running []fx.Hook  // to be stopped, the last one first
}

var _ fx.Lifecycle = (*Lifecycle)(nil)

// Append adds a hook. A hook without OnStart counts as started.
func (l *Lifecycle) Append(h fx.Hook) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h.OnStart == nil && len(l.waiting) == 0 {
		l.running = append(l.running, h)
		return
	}
	l.waiting = append(l.waiting, h)
}

// Start runs the OnStart of the hooks that were appended since the last call, in
// order, up to the first that fails.
func (l *Lifecycle) Start(ctx context.Context) error {
	for {
		h, ok := l.next()
		if !ok {
			return nil
		}
		if h.OnStart != nil {
			if err := contain("OnStart", ctx, h.OnStart); err != nil {
				return err
			}
		}
		l.mu.Lock()
		l.running = append(l.running, h)
		l.mu.Unlock()
	}
}

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

// Stop runs the OnStop of every started hook in reverse order, and of every hook
// that has nothing to start. All of them run, whatever the others do; their errors
// and panics are joined.
func (l *Lifecycle) Stop(ctx context.Context) (err error) {
	done := false
	defer func() { // a hook ended this goroutine
		if !done {
			_ = l.Stop(ctx)
		}
	}()
	for {
		h, ok := l.last()
		if !ok {
			done = true
			return err
		}
		if h.OnStop != nil {
			err = errors.Join(err, contain("OnStop", ctx, h.OnStop))
		}
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

func contain(what string, ctx context.Context, f func(context.Context) error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%s hook: panic: %v", what, r)
		}
	}()
	if err := f(ctx); err != nil {
		return fmt.Errorf("%s hook: %w", what, err)
	}
	return nil
}
