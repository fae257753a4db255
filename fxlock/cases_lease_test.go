package fxlock_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

// A context that has ended gets no lock.
func TestCase_A01_ADeadContextGetsNoLock(t *testing.T) {
	var j journal
	store := newSpyStore(&j)
	lock := newLock(t, store)
	ctx, cancel := context.WithCancelCause(t.Context())
	never := func() { t.Error("the body ran") }

	store.acquire = func(g lockfx.Grant, err error) (lockfx.Grant, error) { cancel(errWhy); return g, err }
	err := lock.Run(ctx, never) // it ended while the store granted
	wantIs(t, err, context.Canceled, errWhy)
	if !store.free() || lock.Held() {
		t.Error("the lease was kept")
	}
	j.expect(t, "acquire", "release")

	store.acquire = func(g lockfx.Grant, err error) (lockfx.Grant, error) { t.Error("the store was asked"); return g, err }
	wantIs(t, lock.Run(ctx, never), context.Canceled, errWhy)
	ok, err := lock.Acquire(ctx)
	wantIs(t, err, context.Canceled, errWhy)
	if ok {
		t.Error("acquired")
	}
}

// The context of Acquire bounds the attempt, not the hold.
func TestCase_A03_TheTimeoutOfAcquireDoesNotEndTheHeartbeat(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := newSpyStore(new(journal))
		lock := newLock(t, store)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if ok, err := lock.Acquire(ctx); !ok || err != nil {
			t.Fatal(ok, err)
		}
		time.Sleep(10 * ttl)
		if !lock.Held() || !store.valid(lock.Token()) {
			t.Error("the lease ended with the context of the attempt")
		}
		if ok, err := lock.Release(ctx); !ok || err != nil {
			t.Error(ok, err)
		}
	})
}

// An outage is not contention.
func TestCase_A05_AnOutageIsNotHeldBySomebodyElse(t *testing.T) {
	store := newSpyStore(new(journal))
	lock := newLock(t, store)
	store.down = errBody
	ok, err := lock.Acquire(t.Context())
	wantIs(t, err, lockfx.ErrStore, errBody)
	runErr := lock.Run(t.Context(), func() { t.Error("the body ran") })
	wantIs(t, runErr, lockfx.ErrStore, errBody)
	if ok || errors.Is(err, lockfx.ErrNotAcquired) || errors.Is(runErr, lockfx.ErrNotAcquired) {
		t.Errorf("an outage is told as contention: %v, %v", err, runErr)
	}

	store.down = nil
	inTheWay(t, store)
	ok, err = lock.Acquire(t.Context())
	if ok || err != nil {
		t.Errorf("contention is (%v, %v), want (false, nil)", ok, err)
	}
	runErr = lock.Run(t.Context(), func() { t.Error("the body ran") })
	var refused *lockfx.NotAcquiredError
	if !errors.As(runErr, &refused) || refused.HeldBy != "somebody" || errors.Is(runErr, lockfx.ErrStore) || refused.Self {
		t.Errorf("contention is told as %v", runErr)
	}
}

// Two locks with one key in one process exclude each other.
func TestCase_A10_TwoLocksWithOneKeyExcludeEachOther(t *testing.T) {
	store := fxlock.NewMemoryStore()
	a, b := newLock(t, store), newLock(t, store)
	must(t, a.Run(t.Context(), func(ctx context.Context, first lockfx.Token) {
		err := b.Run(ctx, func() { t.Error("both ran") })
		var refused *lockfx.NotAcquiredError
		if !errors.As(err, &refused) || refused.Self {
			t.Errorf("the second got %v", err)
		}
		if b.Token() != 0 || a.Token() != first {
			t.Errorf("tokens %v and %v", a.Token(), b.Token())
		}
	}))
	must(t, b.Run(t.Context(), func() {}))
}

// Who is cut off stops by its own clock, before anybody else can win.
func TestCase_R01_WhoIsCutOffStopsBeforeAnotherCanWin(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := newSpyStore(new(journal))
		lock := newLock(t, store, fxlock.WithRenewRetry())
		store.renew = func() error { return errors.New("no route to host") }
		var fence lockfx.Token
		err := lock.Run(t.Context(), func(ctx context.Context, h lockfx.Holder, token lockfx.Token) error {
			fence = token
			<-ctx.Done()
			if h.Held() || !store.valid(token) {
				t.Errorf("at the end of trust: held %v, but the store keeps the lease: %v", h.Held(), store.valid(token))
			}
			return context.Cause(ctx)
		})
		var lost *lockfx.LostError
		if !errors.As(err, &lost) || lost.Reason != lockfx.ReasonExpired || lost.Token != fence || lost.Key != key {
			t.Errorf("the run ended with %v", err)
		}
		grant, err := store.MemoryStore.Acquire(t.Context(), key, ttl)
		if err != nil || !grant.OK || grant.Token <= fence {
			t.Errorf("the next holder got %+v, %v; the fence was %v", grant, err, fence)
		}
	})
}

// The handler of a loss is called once, and its panic is contained.
func TestCase_R08_OnLostIsCalledOnceAndContained(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := newSpyStore(new(journal))
		var reasons []lockfx.Reason
		var panics []error
		lock := newLock(t, store,
			fxlock.WithOnLost(func(r lockfx.Reason) { reasons = append(reasons, r); panic("boom") }),
			fxlock.Observer(func(e lockfx.Event) {
				if e.Kind == lockfx.EventCallbackPanicked {
					panics = append(panics, e.Err)
				}
			}))
		err := lock.Run(t.Context(), func(ctx context.Context) {
			store.takeAway(t)
			_, _ = lock.Tick(ctx) // again
			synctest.Wait()
		})
		wantIs(t, err, lockfx.ErrLost)
		if len(reasons) != 1 || reasons[0] != lockfx.ReasonHeartbeatFailed || len(panics) != 1 || !strings.Contains(panics[0].Error(), "boom") {
			t.Errorf("OnLost got %v, observers %v", reasons, panics)
		}
		must(t, lock.Run(t.Context(), func() {}))
	})
}

// Work that ends in a panic leaves no renewer behind.
func TestCase_R09_NothingRenewsAfterAPanicOrExit(t *testing.T) {
	for name, body := range map[string]func(){"panic": func() { panic(errBody) }, "exit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				store := newSpyStore(new(journal))
				lock := newLock(t, store)
				endingOf(func() error { return lock.Run(t.Context(), body) })
				store.renew = func() error { t.Error("it was renewed"); return nil }
				time.Sleep(10 * ttl)
				if !store.free() {
					t.Error("the key is still held")
				}
			})
		})
	}
}

// A request that was cancelled still releases; what fails is told.
func TestCase_L01_ReleaseOutlivesACancelledRequest(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var j journal
		store := newSpyStore(&j)
		lock := newLock(t, store)
		ctx, cancel := context.WithCancel(t.Context())
		err := lock.Run(ctx, func() error { cancel(); return ctx.Err() })
		if !identical(err, context.Canceled) || !store.free() {
			t.Errorf("error %v, free %v", err, store.free())
		}
		j.expect(t, "acquire", "release")

		slow := unanswering("release")
		err = newLock(t, slow, fxlock.WithReleaseTimeout(2*time.Second)).Run(t.Context(), func() {})
		wantIs(t, err, lockfx.ErrTimeout)
		wantText(t, err, `release "nightly"`, "2s")
	})
}

// The error of a release does not hide the work's.
func TestCase_L04_TheWorksErrorComesFirst(t *testing.T) {
	store := newSpyStore(new(journal))
	lock := newLock(t, store)
	store.release = func() (bool, error) { return false, errRelease }
	err := lock.Do(t.Context(), func(context.Context, lockfx.Holder) error { return errBody })
	wantIs(t, err, errBody, errRelease)
	if first, _, _ := strings.Cut(err.Error(), "\n"); first != errBody.Error() {
		t.Errorf("first is told %q", first)
	}
}
