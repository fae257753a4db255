package fxlock_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"testing"

	"go.uber.org/fx"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

// What others see as the holder: the run's label, else the lock's, else that of
// the context, else the process and the lock.
func TestWithLabel_OfARun(t *testing.T) {
	host, err := os.Hostname()
	must(t, err)
	process := host + "/" + strconv.Itoa(os.Getpid()) + "/" + key
	for name, tt := range map[string]struct {
		lock, ctx, run, want string
	}{
		"none":     {"", "", "", process},
		"context":  {"", "c", "", "c"},
		"lock":     {"l", "c", "", "l"},
		"run":      {"l", "c", "r", "r"},
		"run only": {"", "", "r", "r"},
	} {
		t.Run(name, func(t *testing.T) {
			store := newSpyStore(new(journal))
			var nightly Nightly
			lock := lockIn(t, store, options(fxlock.WithLabel(tt.lock),
				fxlock.Body[Nightly](func() error { return nil }, fxlock.WithLabel(tt.run))), fx.Populate(&nightly))
			ctx := t.Context()
			if tt.ctx != "" {
				ctx = lockfx.WithLabel(ctx, tt.ctx)
			}
			inside := func(ctx context.Context) {
				if got := lockfx.LabelFrom(ctx); got != tt.ctx {
					t.Errorf("the body's context has the label %q, want %q", got, tt.ctx)
				}
			}
			must(t, lock.Run(ctx, inside, fxlock.WithLabel(tt.run)))
			must(t, lock.Do(ctx, func(ctx context.Context, _ lockfx.Holder) error { inside(ctx); return nil }, fxlock.WithLabel(tt.run)))
			must(t, nightly(ctx))
			if want := []string{tt.want, tt.want, tt.want}; !slices.Equal(store.labels, want) {
				t.Errorf("the store saw %q, want %q", store.labels, want)
			}
			must(t, lock.Run(ctx, func(context.Context) error {
				var refused *lockfx.NotAcquiredError
				err := newLock(t, store.MemoryStore).Run(t.Context(), func() {})
				if !errors.As(err, &refused) || refused.HeldBy == "" || refused.Self || refused.RetryAfter <= 0 {
					t.Errorf("refused by %v", err)
				}
				return nil
			}))
		})
	}
}

// A lock that is taken in the body of another one is held under its own label.
func TestWithLabel_NestedLocksHaveTheirOwn(t *testing.T) {
	store := newSpyStore(new(journal))
	outer := newLock(t, store, fxlock.WithLabel("outer"))
	inner := newLock(t, store, fxlock.WithKey("inner"))
	must(t, outer.Run(t.Context(), func(ctx context.Context) error {
		return inner.Do(ctx, func(context.Context, lockfx.Holder) error { return nil })
	}))
	host, err := os.Hostname()
	must(t, err)
	if want := []string{"outer", host + "/" + strconv.Itoa(os.Getpid()) + "/inner"}; !slices.Equal(store.labels, want) {
		t.Errorf("the store saw %q, want %q", store.labels, want)
	}
}
