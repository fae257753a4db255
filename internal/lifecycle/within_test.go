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

var errOver = errors.New("the waiting is over")

func TestWithinEndsTheAttemptAndNotTheHold(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		within, end := context.WithCancelCause(background)
		err := r.RunOn(background, lifecycle.Terms{Within: within}, func(ctx context.Context, h *lifecycle.Hold) error {
			end(errOver)
			time.Sleep(10 * ttl)
			if ctx.Err() != nil || !h.Held() {
				t.Errorf("the hold ended: %v", context.Cause(ctx))
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}

		within, end = context.WithCancelCause(background)
		r.store.acquires(func(ctx context.Context, _ lockfx.Token) (lockfx.Grant, error) {
			<-ctx.Done()
			return lockfx.Grant{}, ctx.Err()
		})
		time.AfterFunc(time.Second, func() { end(errOver) })
		began := time.Now()
		err = r.RunOn(background, lifecycle.Terms{Within: within}, func(context.Context, *lifecycle.Hold) error {
			t.Error("the body ran")
			return nil
		})
		if !errors.Is(err, errOver) || !errors.Is(err, lockfx.ErrStore) || time.Since(began) != time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		r.wantEvents(t, "acquired, released, failed")
		if e := r.seen.all()[2]; e.Reason != lockfx.ReasonNone || !errors.Is(e.Err, errOver) {
			t.Errorf("the event is %v, for %v", e, e.Reason)
		}
	})
}

// A lease that is granted when nobody waits for it any more is given back.
func TestAGrantBehindTheEndOfTheWaiting(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		within, end := context.WithCancelCause(background)
		r.store.acquires(func(_ context.Context, next lockfx.Token) (lockfx.Grant, error) {
			end(errOver)
			synctest.Wait()
			return lockfx.Grant{OK: true, Token: next}, nil
		})
		err := r.RunOn(background, lifecycle.Terms{Within: within}, func(context.Context, *lifecycle.Hold) error {
			t.Error("the body ran")
			return nil
		})
		if !errors.Is(err, errOver) {
			t.Errorf("err = %v", err)
		}
		r.wantCalls(t, "acquire", "release 1")
		r.wantState(t, lockfx.StateIdle)
	})
}

func TestSuppressedAttemptsAreNotAnnounced(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		body := func(context.Context, *lifecycle.Hold) error { return nil }
		for _, suppressed := range []lockfx.EventKind{0, lockfx.EventRefused, lockfx.EventFailed} {
			for _, err := range []error{nil, errCause} {
				r.store.acquires(func(context.Context, lockfx.Token) (lockfx.Grant, error) { return lockfx.Grant{}, err })
				if err := r.RunOn(background, lifecycle.Terms{Suppress: suppressed, Gate: "noted"}, body); err == nil {
					t.Error("no error")
				}
			}
			r.store.acquires(nil)
			if err := r.RunOn(background, lifecycle.Terms{Suppress: suppressed, Gate: "noted"}, body); err != nil {
				t.Error(err)
			}
		}
		r.wantEvents(t, "refused, failed, acquired, released, failed, acquired, released, refused, acquired, released")
		for _, e := range r.seen.all() {
			if e.Gate != "noted" {
				t.Errorf("%v notes %q", e.Kind, e.Gate)
			}
		}
	})
}

func TestVacantClosesWhenAnAcquisitionCanBegin(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		vacant := func() bool {
			select {
			case <-r.Vacant():
				return true
			default:
				return false
			}
		}
		if !vacant() {
			t.Error("an idle lock is not vacant")
		}
		r.acquire(t)
		waiting := r.Vacant()
		if vacant() {
			t.Error("a held lock is vacant")
		}
		r.wantRelease(t, true)
		<-waiting
		if !vacant() {
			t.Error("a released lock is not vacant")
		}
		r.store.acquires(func(context.Context, lockfx.Token) (lockfx.Grant, error) {
			waiting = r.Vacant()
			if vacant() {
				t.Error("a lock that is being acquired is vacant")
			}
			return lockfx.Grant{}, nil
		})
		if ok, err := r.Acquire(background); ok || err != nil {
			t.Error(ok, err)
		}
		<-waiting
	})
}

// watcher is a script that watches as it is told.
type watcher struct {
	script
	watch func(ctx context.Context) (<-chan struct{}, func(), error)
}

func (w *watcher) Watch(ctx context.Context, _ string) (<-chan struct{}, func(), error) {
	return w.watch(ctx)
}

func TestWatchIsACallLikeOthers(t *testing.T) {
	hangs := func(ctx context.Context) (<-chan struct{}, func(), error) {
		<-ctx.Done()
		return nil, nil, ctx.Err()
	}
	for name, test := range map[string]struct {
		watch   func(ctx context.Context) (<-chan struct{}, func(), error)
		timeout time.Duration // of calls
		want    error
		after   time.Duration
	}{
		"an error":             {func(context.Context) (<-chan struct{}, func(), error) { return nil, nil, errCause }, 0, errCause, 0},
		"a panic":              {func(context.Context) (<-chan struct{}, func(), error) { panic(errCause) }, 0, errCause, 0},
		"no channel":           {func(context.Context) (<-chan struct{}, func(), error) { return nil, nil, nil }, 0, lifecycle.ErrNoSignals, 0},
		"no answer":            {hangs, 0, context.DeadlineExceeded, ttl},
		"no answer in time":    {hangs, time.Second, context.DeadlineExceeded, time.Second},
		"not a watcher at all": {nil, 0, lifecycle.ErrNoWatcher, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				began := time.Now()
				freed, stop, err := r.Watch(background)
				if !errors.Is(err, test.want) || freed != nil || stop != nil || time.Since(began) != test.after {
					t.Errorf("after %v: %v", time.Since(began), err)
				}
			}, func(c *lifecycle.Config) {
				c.CallTimeout = test.timeout
				if test.watch != nil {
					c.Store = &watcher{watch: test.watch}
				}
			})
		})
	}
}
