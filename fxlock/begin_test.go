package fxlock_test

import (
	"context"
	"testing"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

// Observers and a condition take their time between the acquisition and the body. A
// lease that was lost in between has no token for the body, so it does not begin.
func TestRun_BodyNeverBeginsWithoutAToken(t *testing.T) {
	ways := map[string]func(context.Context, *fxlock.Lock, ...fxlock.RunOption) error{
		"Do": func(ctx context.Context, lock *fxlock.Lock, opts ...fxlock.RunOption) error {
			return lock.Do(ctx, func(context.Context, lockfx.Holder) error { return errBody }, opts...)
		},
		"DoValue": func(ctx context.Context, lock *fxlock.Lock, opts ...fxlock.RunOption) error {
			_, err := fxlock.DoValue(ctx, lock, func(context.Context, lockfx.Holder) (int, error) { return 1, errBody }, opts...)
			return err
		},
		"Run": func(ctx context.Context, lock *fxlock.Lock, opts ...fxlock.RunOption) error {
			return lock.Run(ctx, func() error { return errBody }, opts...)
		},
	}
	for name, way := range ways {
		t.Run(name+", lost while an observer was told", func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				var j journal
				store := newSpyStore(&j)
				lock := newLock(t, store, fxlock.Observer(func(e lockfx.Event) {
					if e.Kind == lockfx.EventAcquired {
						store.takeAway(t)
					}
				}))
				err := way(t.Context(), lock)
				wantIs(t, err, lockfx.ErrLost)
				wantText(t, err, `run "nightly": start the body: hold "nightly": lease lost: heartbeat failed`)
				j.expect(t, "acquire")
			})
		})
		t.Run(name+", given up while the condition was asked", func(t *testing.T) {
			var j journal
			store := newSpyStore(&j)
			lock := newLock(t, store)
			ctx, cancel := context.WithCancelCause(t.Context())
			err := way(ctx, lock, fxlock.If(func() bool {
				if lock.Held() {
					cancel(errWhy)
				}
				return true
			}), fxlock.MinHold(ttl))
			wantIs(t, err, errWhy)
			wantText(t, err, `run "nightly": start the body: `)
			j.expect(t, "acquire", "release") // what did not begin keeps nothing
		})
	}
}
