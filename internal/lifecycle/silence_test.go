package lifecycle_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/lifecycle"
)

// Whoever hears of a loss hears what the store said last, or that it did not answer, and
// since when it confirmed nothing: in the error, in the cause of the context, in the event.
func TestLoss_SaysWhatTheStoreSaidLast(t *testing.T) {
	silent := func(ctx context.Context, _ lockfx.Token) (bool, error) { <-ctx.Done(); return false, ctx.Err() }
	deaf := func(context.Context, lockfx.Token) (bool, error) { time.Sleep(2 * ttl); return true, nil }
	failing := func(context.Context, lockfx.Token) (bool, error) { return false, errCause }
	refusing := func(context.Context, lockfx.Token) (bool, error) { return false, nil }
	for name, tt := range map[string]struct {
		renew  answer
		retry  bool
		reason lockfx.Reason
		says   string // "" where the store is not to blame
	}{
		"a renewal that ends with its context":  {silent, false, lockfx.ReasonExpired, "no answer before the end of the lease"},
		"a renewal that heeds nothing":          {deaf, false, lockfx.ReasonExpired, "no answer before the end of the lease"},
		"a renewal that is tried again":         {failing, true, lockfx.ReasonExpired, errCause.Error()},
		"a renewal that hangs and is tried":     {silent, true, lockfx.ReasonExpired, "no answer within the heartbeat"},
		"a renewal that fails":                  {failing, false, lockfx.ReasonStoreError, errCause.Error()},
		"a renewal that the store refuses":      {refusing, false, lockfx.ReasonHeartbeatFailed, ""},
		"a renewal that the store refuses late": {refusing, true, lockfx.ReasonHeartbeatFailed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				began := r.clock.Now()
				var confirmed time.Time
				renewals := 0
				r.store.renews(func(ctx context.Context, token lockfx.Token) (bool, error) {
					if renewals++; renewals == 1 {
						confirmed = r.clock.Now()
						return true, nil
					}
					return tt.renew(ctx, token)
				})
				var cause error
				err := r.Run(background, func(ctx context.Context, _ *lifecycle.Hold) error {
					<-ctx.Done()
					cause = context.Cause(ctx)
					return nil
				})
				time.Sleep(2 * ttl)
				synctest.Wait()
				var event lockfx.Event
				for _, e := range r.seen.all() {
					if e.Kind == lockfx.EventLost {
						event = e
					}
				}
				blamed := tt.says != ""
				for where, err := range map[string]error{"returned": err, "cause": cause} {
					var lost *lockfx.LostError
					if !errors.As(err, &lost) || lost.Reason != tt.reason || errors.Is(err, lockfx.ErrStore) != blamed {
						t.Fatalf("%s: %v", where, err)
					}
					if errors.Is(err, lockfx.ErrTimeout) {
						t.Errorf("%s: a loss looks like a wait that is over: %v", where, err)
					}
					if blamed && (!strings.Contains(err.Error(), tt.says) || !lost.SilentSince.Equal(confirmed)) {
						t.Errorf("%s: silent since %v, want %v: %v", where, lost.SilentSince.Sub(began), confirmed.Sub(began), err)
					}
				}
				if event.Reason != tt.reason || (event.Err != nil) != blamed || blamed && !event.SilentSince.Equal(confirmed) {
					t.Errorf("the event is %+v", event)
				}
			}, func(c *lifecycle.Config) { c.RenewRetry = tt.retry })
		})
	}
}

// A longest hold that is over before the store has answered is no fault of the store.
func TestMaxHold_ThatIsShorterThanTheStoreTakes(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.store.acquires(func(ctx context.Context, next lockfx.Token) (lockfx.Grant, error) {
			time.Sleep(20 * time.Millisecond)
			return lockfx.Grant{OK: true, Token: next}, ctx.Err()
		})
		err := r.RunOn(background, lifecycle.Terms{MaxHold: 10 * time.Millisecond}, func(context.Context, *lifecycle.Hold) error {
			t.Error("the body ran")
			return nil
		})
		if errors.Is(err, lockfx.ErrStore) || !errors.Is(err, lockfx.ErrTimeout) || !strings.Contains(err.Error(), "the max hold of 10ms") {
			t.Errorf("the error is %v", err)
		}
	})
}
