package fxlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/fx"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

// Two requests at once on one injected lock: without Wait the second is refused, with
// it the second queues, and what does not wait never comes first.
func TestWait_NobodyJumpsTheQueue(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := newTallyStore()
		elsewhere := holding(t, newLock(t, store))
		lock := newLock(t, store)
		waiter := inBackground(func() error { return lock.Do(t.Context(), workNothing, fxlock.WaitForever()) })
		asked := store.asked()
		refused := func(err error) {
			t.Helper()
			var refusal *lockfx.NotAcquiredError
			if !errors.As(err, &refusal) || !refusal.Self {
				t.Errorf("err = %v", err)
			}
		}
		refused(lock.Run(t.Context(), func() { t.Error("the body ran") }))
		refused(lock.Do(t.Context(), workNothing, fxlock.Wait(0)))
		ok, err := lock.Acquire(t.Context())
		wantIs(t, err, lockfx.ErrNotIdle)
		wantText(t, err, `acquire "nightly": lock is not idle: other callers in this process run under it, or wait for it`)
		if ok || store.asked() != asked {
			t.Errorf("acquired: %v; the store was asked %d times", ok, store.asked()-asked)
		}
		waiter.waits(t)
		elsewhere()
		noError(t, waiter.endsNow(t))

		release := holding(t, lock)
		refused(lock.Run(t.Context(), func() { t.Error("the body ran") }))
		_, err = lock.Acquire(t.Context())
		wantIs(t, err, lockfx.ErrNotIdle)
		release()
	})
}

// A lease held by hand is waited for like any other.
func TestWait_ForAHoldByHand(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := newTallyStore()
		lock := newLock(t, store)
		if ok, err := lock.Acquire(t.Context()); !ok || err != nil {
			t.Fatal(ok, err)
		}
		wantIs(t, lock.Do(t.Context(), workNothing), lockfx.ErrNotIdle)
		waiter := inBackground(func() error { return lock.Do(t.Context(), workNothing, fxlock.WaitForever()) })
		time.Sleep(time.Hour)
		waiter.waits(t)
		if ok, err := lock.Release(t.Context()); !ok || err != nil {
			t.Error(ok, err)
		}
		noError(t, waiter.endsNow(t))
		if ok, err := lock.Acquire(t.Context()); !ok || err != nil { // nobody waits any more
			t.Error(ok, err)
		}
	})
}

func TestWait_EndsWithTheStop(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := newTallyStore()
		var lock *fxlock.Lock
		app := fx.New(fx.NopLogger, fxlock.Module(key, fxlock.WithStore(store), fxlock.WaitForever()), fx.Populate(&lock))
		for range 3 { // an application can be started again
			release := holding(t, newLock(t, store))
			must(t, app.Start(t.Context()))
			var waiters []*call
			for range 3 {
				waiters = append(waiters, inBackground(func() error { return lock.Do(context.Background(), workNothing) }))
			}
			time.Sleep(time.Minute)
			must(t, app.Stop(t.Context()))
			for _, w := range waiters {
				wantIs(t, w.endsNow(t), lockfx.ErrDisposed)
			}
			release()
			store.wantLeft(t)
			must(t, app.Start(t.Context()))
			noError(t, lock.Do(t.Context(), workNothing))
			must(t, app.Stop(t.Context()))
			wantIs(t, lock.Do(t.Context(), workNothing), lockfx.ErrDisposed)
		}
	})
}
