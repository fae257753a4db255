package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/lifecycle"
	"github.com/lockfx/lockfx/internal/memstore"
)

func TestTheContextOfAcquireBoundsNothingElse(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		ctx, cancel := context.WithTimeout(background, time.Second)
		defer cancel()
		if ok, err := r.Acquire(ctx); !ok || err != nil {
			t.Fatal(ok, err)
		}
		time.Sleep(10 * ttl)
		synctest.Wait()
		if ctx.Err() == nil || !r.Held() {
			t.Errorf("the context: %v; held: %v", ctx.Err(), r.Held())
		}
		if ok, err := r.Release(ctx); !ok || err != nil { // a cancelled request still releases
			t.Errorf("Release = %v, %v", ok, err)
		}
	})
}

func TestACancelledRunStillReleases(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		ctx, cancel := context.WithCancelCause(lockfx.WithLabel(background, "host/1/app"))
		r.store.releases(func(ctx context.Context, _ lockfx.Token) (bool, error) {
			limit, limited := ctx.Deadline()
			if ctx.Err() != nil || !limited || time.Until(limit) != 5*time.Second {
				t.Errorf("the release has %v until %v", ctx.Err(), limit)
			}
			if got := lockfx.LabelFrom(ctx); got != "host/1/app" {
				t.Errorf("the release carries the label %q", got)
			}
			return true, nil
		})
		if err := r.Run(ctx, func(ctx context.Context, h *lifecycle.Hold) error {
			cancel(errCause)
			if context.Cause(ctx) != errCause { //nolint:errorlint // it must be the very same
				t.Errorf("the body's context ended by %v", context.Cause(ctx))
			}
			if !h.Held() {
				t.Error("the end of the context took the lease")
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
		r.wantCalls(t, "acquire", "release 1")
	})
}

// Every call that the store gets carries the values of the acquisition.
func TestValuesReachEveryCall(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		want := func(ctx context.Context) {
			t.Helper()
			if got := lockfx.LabelFrom(ctx); got != "host/1/app" {
				t.Errorf("label %q", got)
			}
		}
		r.store.acquires(func(ctx context.Context, next lockfx.Token) (lockfx.Grant, error) {
			want(ctx)
			return lockfx.Grant{OK: true, Token: next}, nil
		})
		r.store.renews(once(want))
		r.store.releases(once(want))
		labelled := lockfx.WithLabel(background, "host/1/app")
		if err := r.Run(labelled, func(ctx context.Context, _ *lifecycle.Hold) error {
			want(ctx)
			time.Sleep(beat)
			synctest.Wait()
			return nil
		}); err != nil {
			t.Error(err)
		}
		r.wantCalls(t, "acquire", "renew 1", "release 1")

		ended, cancel := context.WithCancel(labelled) // a lease that comes too late goes back with them
		r.store.acquires(func(_ context.Context, next lockfx.Token) (lockfx.Grant, error) {
			cancel()
			return lockfx.Grant{OK: true, Token: next}, nil
		})
		if ok, err := r.Acquire(ended); ok || !errors.Is(err, context.Canceled) {
			t.Errorf("Acquire = %v, %v", ok, err)
		}
		r.wantCalls(t, "acquire", "renew 1", "release 1", "acquire", "release 2")
	})
}

// What went wrong is said once, whether the store says all of it or only the cause.
func TestAnErrorOfTheStoreIsToldOnce(t *testing.T) {
	for name, own := range map[string]error{
		"a cause":   errors.New("no route"),
		"the whole": fmt.Errorf("acquire %q: %w: no route", key, lockfx.ErrStore),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				r.store.acquires(func(context.Context, lockfx.Token) (lockfx.Grant, error) { return lockfx.Grant{}, own })
				_, err := r.Acquire(background)
				const want = `acquire "nightly": store failed: no route`
				if !errors.Is(err, own) || !errors.Is(err, lockfx.ErrStore) || err.Error() != want {
					t.Errorf("the error is %v", err)
				}
			})
		})
	}
}

func TestTheFenceRisesAcrossAStart(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.store.last = 41
		r.acquire(t)
		r.dispose(t)
		if r.Last() != 42 {
			t.Fatalf("the last token is %v", r.Last())
		}
		next := newRig(t, func(c *lifecycle.Config) { c.Last = r.Last() })
		if next.Last() != 42 || next.Token() != 0 {
			t.Errorf("after the start: last %v, token %v", next.Last(), next.Token())
		}
		for _, token := range []lockfx.Token{1, 41, 42} { // a store that forgot
			next.store.last = token - 1
			if ok, err := next.Acquire(background); ok || !errors.Is(err, lockfx.ErrFenceRegressed) {
				t.Errorf("token %v: %v, %v", token, ok, err)
			}
			if next.Last() != 42 {
				t.Errorf("the last token is %v", next.Last())
			}
		}
		next.store.last = 42
		next.acquire(t)
		if next.Token() != 43 {
			t.Errorf("token %v", next.Token())
		}
		next.dispose(t)
	})
}

func TestTwoLocksWithOneKeyExcludeEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		one := newRig(t, func(c *lifecycle.Config) { c.Store = store })
		two := newRig(t, func(c *lifecycle.Config) { c.Store = store })
		if err := one.Run(lockfx.WithLabel(background, "one"), func(context.Context, *lifecycle.Hold) error {
			time.Sleep(10 * ttl)
			err := two.Run(background, func(context.Context, *lifecycle.Hold) error {
				t.Error("two holders at once")
				return nil
			})
			var not *lockfx.NotAcquiredError
			if !errors.As(err, &not) || not.Self || not.HeldBy != "one" || not.Key != key || not.RetryAfter <= 0 || not.RetryAfter > ttl {
				t.Errorf("Run = %v", err)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
		if err := two.Run(background, nothing); err != nil || two.Last() <= one.Last() {
			t.Errorf("%v; tokens %v and %v", err, one.Last(), two.Last())
		}
	})
}
