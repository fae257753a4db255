package lifecycle_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/lifecycle"
)

// A client that sets the deadline of its connection knows no other way to learn when an
// answer comes too late to be of use.
func TestRequests_CarryTheDeadlineOfTheLease(t *testing.T) {
	for name, tt := range map[string]struct {
		limit   time.Duration // of the caller
		change  func(*lifecycle.Config)
		acquire time.Duration // from the request on
		renew   time.Duration
	}{
		"the lease's":                   {time.Hour, func(*lifecycle.Config) {}, trusted, trusted - beat},
		"the caller's, if it is first":  {time.Second, func(*lifecycle.Config) {}, time.Second, trusted - beat},
		"the longest hold's":            {time.Hour, func(c *lifecycle.Config) { c.Terms.MaxHold = 15 * time.Second }, 15 * time.Second, 5 * time.Second},
		"the attempt's, if others come": {time.Hour, renewRetry, trusted, beat},
		"the call timeout's":            {time.Hour, func(c *lifecycle.Config) { c.CallTimeout = time.Second }, time.Second, time.Second},
	} {
		for clockName, clock := range map[string]lockfx.Clock{"the rig's clock": nil, "the system's clock": lockfx.SystemClock()} {
			t.Run(name+" by "+clockName, func(t *testing.T) {
				inBubble(t, func(t *testing.T, r *rig) {
					r.store.acquires(func(ctx context.Context, next lockfx.Token) (lockfx.Grant, error) {
						wantDeadline(ctx, t, "Acquire", tt.acquire)
						return lockfx.Grant{OK: true, Token: next}, nil
					})
					r.store.renews(once(func(ctx context.Context) { wantDeadline(ctx, t, "Renew", tt.renew) }))
					ctx, cancel := context.WithTimeout(background, tt.limit)
					defer cancel()
					if ok, err := r.Acquire(ctx); !ok || err != nil {
						t.Fatal(ok, err)
					}
					time.Sleep(beat)
					synctest.Wait()
					r.wantRelease(t, true)
					r.wantCalls(t, "acquire", "renew 1", "release 1")
				}, tt.change, func(c *lifecycle.Config) {
					if clock != nil {
						c.Clock = clock
					}
				})
			})
		}
	}
}

func wantDeadline(ctx context.Context, t *testing.T, call string, want time.Duration) {
	t.Helper()
	if at, limited := ctx.Deadline(); !limited || time.Until(at) != want {
		t.Errorf("%s has a deadline in %v (%v), want %v", call, time.Until(at), limited, want)
	}
}

// The deadline of the request is not that of the body: heartbeats move the lease's.
func TestABodyHasNoDeadlineOfItsLease(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		if err := r.Run(background, func(ctx context.Context, _ *lifecycle.Hold) error {
			if at, limited := ctx.Deadline(); limited {
				t.Errorf("the body's context has the deadline %v", at)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	})
}
