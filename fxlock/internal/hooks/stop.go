package hooks

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Stop runs the OnStop of every started hook in reverse order, and of every hook
// that has nothing to start. All of them run, whatever the others do; their errors
// and panics are joined. Nothing is started afterwards.
//
// A hook that does not return soon after ctx has ended is not waited for: the error names
// it, and running closes when it has returned and those behind it were called as well.
func (l *Lifecycle) Stop(ctx context.Context) (running <-chan struct{}, err error) {
	busy := l.takeTurn(ctx)
	if busy == nil && !l.any() {
		l.broken = errOver
		l.leaveTurn()
		return nil, nil
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if busy != nil {
			l.turn <- struct{}{}
		}
		defer l.leaveTurn()
		l.broken = errOver
		l.stopAll(ctx)
	}()
	if busy != nil {
		return ended, errBusy
	}
	select {
	case <-ended:
		return nil, l.outcome(nil)
	case <-ctx.Done():
	}
	grace := time.NewTimer(l.patience / 10)
	defer grace.Stop()
	select {
	case <-ended:
		return nil, l.outcome(nil)
	case <-grace.C:
		return ended, l.outcome(context.Cause(ctx))
	}
}

// stopAll stops what is to be stopped, the last one first.
func (l *Lifecycle) stopAll(ctx context.Context) {
	done := false
	defer func() { // a hook ended this goroutine
		if !done {
			l.stopped(errStopExited)
			l.stopAll(ctx)
		}
	}()
	for h, ok := l.last(); ok; h, ok = l.last() {
		l.stopped(contain(ctx, "OnStop", h.OnStop))
	}
	done = true
}

// stopped notes that the hook which last returned was stopped.
func (l *Lifecycle) stopped(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failure, l.stopping = errors.Join(l.failure, err), 0
}

// outcome returns what the hooks failed with so far, and which of them is not waited for
// any more because of over.
func (l *Lifecycle) outcome(over error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopping == 0 || over == nil {
		return l.failure
	}
	return errors.Join(l.failure, fmt.Errorf("OnStop hook of %s has not returned: %w", place(l.stopping), over))
}

// any reports whether there is a hook to stop.
func (l *Lifecycle) any() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.running)+len(l.waiting) > 0
}

// last returns the hook to stop next, and notes that it is under way.
func (l *Lifecycle) last() (h hook, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.waiting) > 0 && !ok { // those after a failed start
		h = l.waiting[len(l.waiting)-1]
		l.waiting = l.waiting[:len(l.waiting)-1]
		ok = h.OnStart == nil
	}
	if n := len(l.running); !ok && n > 0 {
		h, ok = l.running[n-1], true
		l.running = l.running[:n-1]
	}
	if ok {
		l.stopping = h.pc
	}
	return h, ok
}
