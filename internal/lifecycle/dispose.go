package lifecycle

import (
	"context"
	"fmt"

	"github.com/lockfx/lockfx"
)

// Dispose ends the machine; it is terminal, idempotent and safe to call more than
// once at a time. It refuses further acquisitions, cancels one under way and the
// body of a run (cause [lockfx.ErrDisposed]), and keeps renewing until that body
// has returned and its own goroutine has released. A lease without a run is
// released here.
//
// If ctx ends first, the lease is not released under the running body: it is not
// renewed any more, the error says so, and the run releases when its body does
// return.
func (m *Machine) Dispose(ctx context.Context) error {
	for {
		if err := m.Drain(ctx); err != nil {
			return m.disposedWith(err)
		}
		h := m.cur.Load()
		if h == nil {
			return m.disposedWith(nil)
		}
		if _, err := m.release(context.WithoutCancel(ctx), h); err != nil {
			return m.disposedWith(err)
		}
	}
}

// Drain is the part of Dispose that waits for what is under way. A lease without a run is
// left to its holder.
func (m *Machine) Drain(ctx context.Context) error {
	for {
		m.BeginDispose()
		free := m.whenFree()
		if free == nil {
			return nil
		}
		select {
		case <-free:
		case <-ctx.Done():
			if err := m.abandon(ctx); err != nil {
				return err
			}
		}
	}
}

// BeginDispose does what Dispose does first, and waits for nothing: from now on
// acquisitions are refused, and what is under way is cancelled.
func (m *Machine) BeginDispose() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.disposed = true
	m.dispose()
	if !m.inUse {
		return
	}
	if m.pending != nil {
		m.pending.cancel(lockfx.ErrDisposed)
	}
	if h := m.cur.Load(); h != nil {
		h.cancel(lockfx.ErrDisposed)
	}
}

// Abandon gives up on what is held or under way after BeginDispose, whoever waits for it or
// not: it is not renewed any more. It waits for nothing.
func (m *Machine) Abandon(ctx context.Context) {
	if err := m.abandon(ctx); err != nil {
		_ = m.disposedWith(err) // the event says so; Dispose does, too, if it is called
	}
}

// whenFree returns a channel that closes when what is under way has ended, or nil if
// nothing is.
func (m *Machine) whenFree() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.inUse {
		return nil
	}
	if m.free == nil {
		m.free = make(chan struct{})
	}
	return m.free
}

// disposedWith announces the disposal, once, and returns err.
func (m *Machine) disposedWith(err error) error {
	m.mu.Lock()
	defer m.unlock()
	if m.State() == lockfx.StateIdle {
		m.move(nil, lockfx.StateReleased)
	}
	if !m.over {
		m.over = true
		m.announce(nil, lockfx.Event{Kind: lockfx.EventDisposed, Err: err})
	}
	return err
}

// abandon gives up on what is held or under way, and says what that is: it is not renewed
// any more. The error is nil if there is nothing by now.
func (m *Machine) abandon(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.cur.Load()
	switch {
	case h == nil && !m.inUse:
		return nil
	case h == nil:
		return m.disposeError(ctx, "an acquisition is still under way")
	case h.releasing:
		return m.disposeError(ctx, "the lease of token %d is still being released", h.token)
	}
	h.abandon()
	if !h.running {
		return m.disposeError(ctx, "it is still held under token %d; its lease is left to expire", h.token)
	}
	if h.left != nil {
		return m.disposeError(ctx, "what a body left running still runs under token %d; its lease is left to expire, and released when that has ended", h.token)
	}
	return m.disposeError(ctx, "the body still runs under token %d; its lease is left to expire, and released when the body returns", h.token)
}

// disposeError says what was still under way when ctx ended.
func (m *Machine) disposeError(ctx context.Context, format string, args ...any) error {
	return fmt.Errorf("dispose %q: %s: %w", m.cfg.Key, fmt.Sprintf(format, args...), causeOf(ctx))
}
