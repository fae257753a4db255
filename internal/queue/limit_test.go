package queue_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/lifecycle"
	"github.com/lockfx/lockfx/internal/queue"
)

// Whatever the store is busy with, the end of the waiting is not waited for.
func TestARequestUnderWayIsCutShort(t *testing.T) {
	hangs := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	type end struct {
		cause error
		do    func(p *process, cancel context.CancelCauseFunc)
	}
	ends := map[string]end{
		"cancelled": {errDown, func(_ *process, cancel context.CancelCauseFunc) { cancel(errDown) }},
		"the limit": {lockfx.ErrTimeout, func(*process, context.CancelCauseFunc) {
			time.Sleep(time.Until(time.Now().Truncate(time.Hour).Add(time.Hour)))
		}},
		"disposed": {lockfx.ErrDisposed, func(p *process, _ context.CancelCauseFunc) { go func() { _ = p.Dispose(background) }() }},
	}
	for _, leg := range []string{"the first request", "a later request", "the watch"} {
		for name, end := range ends {
			t.Run(leg+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					store := newSpy()
					p := newProcess(t, store, func(c *lifecycle.Config) { c.TTL = 10 * time.Hour })
					limit := queue.Forever
					if name == "the limit" {
						limit = time.Until(time.Now().Truncate(time.Hour).Add(time.Hour))
					}
					seen := lockfx.ErrNotAcquired
					switch leg {
					case "the first request":
						store.acquires(hangs)
						seen = nil
					case "a later request":
						foreign(t, store.Store, time.Minute)
					case "the watch":
						foreign(t, store.Store, time.Minute)
						store.watch = func(ctx context.Context) (<-chan struct{}, func(), error) { return nil, nil, hangs(ctx) }
					}
					ctx, cancel := context.WithCancelCause(background)
					defer cancel(nil)
					waiter := spawn(func() error { return p.run(ctx, limit, nothing) })
					store.acquires(hangs)
					time.Sleep(2 * time.Minute)
					waits(t, waiter)
					end.do(p, cancel)
					err := endNow(t, waiter)
					wantIs(t, err, end.cause)
					if seen != nil {
						wantIs(t, err, seen) // the last complete answer
						wantNot(t, err, lockfx.ErrStore)
					}
					if n := store.watching(); n != 0 {
						t.Errorf("%d watches are left", n)
					}
				})
			})
		}
	}
}

// Three settings bound three things, and each names itself.
func TestThreeLimitsAreToldApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newSpy()
		store.acquires(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		p := newProcess(t, store)
		err := p.run(background, 3*ttl, nothing)
		wantIs(t, err, lockfx.ErrTimeout, lockfx.ErrStore)
		for _, part := range []string{"the wait limit is 1m30s", "the ttl is 30s"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("it does not say %q: %v", part, err)
			}
		}
		p = newProcess(t, store, func(c *lifecycle.Config) { c.CallTimeout = 7 * time.Second })
		err = p.run(background, time.Minute, nothing)
		wantIs(t, err, lockfx.ErrTimeout, lockfx.ErrStore)
		for _, part := range []string{"the wait limit is 1m0s", "the call timeout of 7s"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("it does not say %q: %v", part, err)
			}
		}
	})
}
