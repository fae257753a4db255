package lifecycle_test

import (
	"context"
	"errors"
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

// Every call that hangs ends with the call timeout, also the one that gives a lease back,
// whose own limit is longer.
func TestCallTimeout_BoundsEveryCall(t *testing.T) {
	const timeout = time.Second
	held := func(t *testing.T, r *rig) { r.acquire(t) }
	for name, tt := range map[string]struct {
		before func(t *testing.T, r *rig)
		call   func(r *rig) error
		want   error
	}{
		"acquire": {func(_ *testing.T, r *rig) {
			r.store.acquires(func(ctx context.Context, _ lockfx.Token) (lockfx.Grant, error) {
				<-ctx.Done()
				return lockfx.Grant{}, ctx.Err()
			})
		}, func(r *rig) error { _, err := r.Acquire(background); return err }, lockfx.ErrTimeout},
		"renew":   {held, func(r *rig) error { _, err := r.Tick(background); return err }, lockfx.ErrLost},
		"release": {held, func(r *rig) error { _, err := r.Release(background); return err }, lockfx.ErrTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				tt.before(t, r)
				r.store.renews(never)
				r.store.releases(never)
				began := time.Now()
				err := tt.call(r)
				if took := time.Since(began); took != timeout || !errors.Is(err, lockfx.ErrStore) || !errors.Is(err, tt.want) {
					t.Errorf("after %v: %v", took, err)
				}
				r.dispose(t)
			}, func(c *lifecycle.Config) { c.CallTimeout = timeout })
		})
	}
}

// An answer that comes too late is no grant. Whoever hears of it hears whose end it missed:
// that of the lease, which the store had all of, or that of the longest hold.
func TestAcquire_SaysWhyALateAnswerIsNoGrant(t *testing.T) {
	const short = time.Second
	for ends, terms := range map[lockfx.Reason]lifecycle.Terms{lockfx.ReasonExpired: {}, lockfx.ReasonMaxHold: {MaxHold: short}} {
		limit, blamed := trusted, lockfx.ErrStore
		if terms.MaxHold > 0 {
			limit, blamed = short, lockfx.ErrTimeout
		}
		for name, late := range map[string]func(r *rig, ctx context.Context) error{
			"it ends with its context": func(_ *rig, ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
			"it heeds no context":      func(*rig, context.Context) error { time.Sleep(limit + time.Second); return nil },
			"the process stood still":  func(r *rig, _ context.Context) error { r.clock.leap(limit, limit); return nil },
		} {
			t.Run(name+", "+ends.String(), func(t *testing.T) {
				inBubble(t, func(t *testing.T, r *rig) {
					granted := false
					r.store.acquires(func(ctx context.Context, next lockfx.Token) (lockfx.Grant, error) {
						err := late(r, ctx)
						granted = err == nil
						return lockfx.Grant{OK: granted, Token: next}, err
					})
					err := r.RunOn(background, terms, func(context.Context, *lifecycle.Hold) error {
						t.Error("the body ran")
						return nil
					})
					for _, what := range []error{lockfx.ErrStore, lockfx.ErrTimeout} {
						if errors.Is(err, what) != (what == blamed) { //nolint:errorlint // one of these two
							t.Errorf("Run = %v", err)
						}
					}
					r.wantEvents(t, "failed")
					if e := r.seen.all()[0]; e.Reason != ends || !errors.Is(e.Err, blamed) {
						t.Errorf("event %v", e)
					}
					if back := r.store.calls("release") != nil; back != granted {
						t.Errorf("granted: %v, and given back: %v", granted, back)
					}
				})
			})
		}
	}
}
