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
		h, free := m.beginDispose()
		switch {
		case free != nil:
			select {
			case <-free:
			case <-ctx.Done():
				if err := m.abandon(ctx); err != nil {
					return m.disposedWith(err)
				}
			}
		case h != nil:
			if _, err := m.release(context.WithoutCancel(ctx), h); err != nil {
				return m.disposedWith(err)
			}
		default:
			return m.disposedWith(nil)
		}
	}
}

// BeginDispose does what Dispose does first, and waits for nothing: from now on
// acquisitions are refused, and what is under way is cancelled.
func (m *Machine) BeginDispose() { m.beginDispose() }

// Abandon gives up on what is under way after BeginDispose, whoever waits for it or not: a
// body that still runs is not renewed any more, and a lease without a run is released. It
// waits for nothing.
func (m *Machine) Abandon(ctx context.Context) {
	if err := m.abandon(ctx); err != nil {
		_ = m.disposedWith(err) // the event says so; Dispose does, too, if it is called
		return
	}
	if h := m.cur.Load(); h != nil {
		go func() { _, _ = m.release(context.WithoutCancel(ctx), h) }()
	}
}

// beginDispose cancels what is under way and returns a channel that closes when
// it has ended, or else the hold that is left to release.
func (m *Machine) beginDispose() (*Hold, <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.disposed = true
	m.dispose()
	h := m.cur.Load()
	if !m.inUse {
		return h, nil
	}
	if m.free == nil {
		m.free = make(chan struct{})
	}
	if m.pending != nil {
		m.pending.cancel(lockfx.ErrDisposed)
	}
	if h != nil {
		h.cancel(lockfx.ErrDisposed)
	}
	return h, m.free
}

// disposedWith announces the disposal, once, and returns err.
func (m *Machine) disposedWith(err error) error {
	m.mu.Lock()
	defer m.unlock()
	if m.State() == lockfx.Idle {
		m.move(nil, lockfx.Released)
	}
	if !m.over {
		m.over = true
		m.announce(nil, lockfx.Event{Kind: lockfx.EventDisposed, Err: err})
	}
	return err
}

// abandon gives up on what is still under way, and says what that is. A body that
// outlives its disposal is not renewed any more. The error is nil if nothing is
// under way by now.
func (m *Machine) abandon(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.cur.Load()
	switch {
	case !m.inUse:
		return nil
	case h == nil:
		return m.disposeError(ctx, "an acquisition is still under way")
	case h.releasing:
		return m.disposeError(ctx, "the lease of token %d is still being released", h.token)
	}
	h.abandon()
	if h.left != nil {
		return m.disposeError(ctx, "what a body left running still runs under token %d; its lease is left to expire, and released when that has ended", h.token)
	}
	return m.disposeError(ctx, "the body still runs under token %d; its lease is left to expire, and released when the body returns", h.token)
}

// disposeError says what was still under way when ctx ended.
func (m *Machine) disposeError(ctx context.Context, format string, args ...any) error {
	return fmt.Errorf("dispose %q: %s: %w", m.cfg.Key, fmt.Sprintf(format, args...), causeOf(ctx))
}
