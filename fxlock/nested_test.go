package fxlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

func nested(err error) bool {
	var refusal *lockfx.NotAcquiredError
	return errors.As(err, &refusal) && refusal.Nested && refusal.Self
}

// A body that asks for its own lock would wait for itself: it is told so at once.
func TestRun_InsideItselfIsRefused(t *testing.T) {
	for name, wait := range map[string][]fxlock.RunOption{"one try": nil, "a wait": {fxlock.WaitForever()}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				lock, other := newLock(t, fxlock.NewMemoryStore()), newLock(t, fxlock.NewMemoryStore())
				began := time.Now()
				must(t, lock.Do(t.Context(), func(ctx context.Context, _ lockfx.Holder) error {
					if err := lock.Do(ctx, workNothing, wait...); !nested(err) || !strings.Contains(err.Error(), "not reentrant") {
						t.Errorf("in its body: %v", err)
					}
					return other.Run(ctx, func(ctx context.Context) error {
						ctx, cancel := context.WithTimeout(ctx, time.Hour)
						defer cancel()
						if err := lock.Run(ctx, func() {}, wait...); !nested(err) {
							t.Errorf("under another lock: %v", err)
						}
						return nil
					}, wait...)
				}))
				if took := time.Since(began); took != 0 {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// The context of a run that is over is like any other.
func TestRun_AfterItselfIsAllowed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		lock := newLock(t, fxlock.NewMemoryStore())
		var ended context.Context
		must(t, lock.Do(t.Context(), func(ctx context.Context, _ lockfx.Holder) error {
			ended = context.WithoutCancel(ctx)
			return nil
		}))
		must(t, lock.Do(ended, workNothing))
	})
}
