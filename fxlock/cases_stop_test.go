package fxlock_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/fx"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

// The lease is not released while the body still runs.
func TestCase_S01_NothingIsReleasedUnderARunningBody(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var j journal
		store := newSpyStore(&j)
		var lock *fxlock.Lock
		app := fx.New(fx.NopLogger, fx.Populate(&lock), fxlock.Module(key, fxlock.WithStore(store)))
		must(t, app.Start(t.Context()))
		done := make(chan error, 1)
		go func() {
			done <- lock.Run(t.Context(), func(ctx context.Context, token lockfx.Token) {
				<-ctx.Done()
				time.Sleep(10 * time.Second) // it takes its time
				if !store.valid(token) {
					t.Error("the lease was released under the body")
				}
				j.add("body ends")
			})
		}()
		synctest.Wait()
		must(t, app.Stop(t.Context()))
		noError(t, <-done)
		j.expect(t, "acquire", "body ends", "release")
	})
}

// A store that is closed in its own OnStop is closed after the release.
func TestCase_S02_TheClientIsClosedAfterTheRelease(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var j journal
		store := newSpyStore(&j)
		var lock *fxlock.Lock
		app := fx.New(fx.NopLogger, fx.Populate(&lock), fxlock.Module(key, fxlock.StoreFromGraph()),
			fx.Provide(func(lc fx.Lifecycle) lockfx.Store {
				lc.Append(fx.StopHook(func() { j.add("store closes") }))
				return store
			}))
		must(t, app.Start(t.Context()))
		done := make(chan error, 1)
		go func() { done <- lock.Run(t.Context(), func(ctx context.Context) { <-ctx.Done() }) }()
		synctest.Wait()
		must(t, app.Stop(t.Context()))
		noError(t, <-done)
		j.expect(t, "acquire", "release", "store closes")
	})
}

// One lock whose release fails does not keep the others from theirs.
func TestCase_S03_OneFailureDoesNotSkipTheOthers(t *testing.T) {
	var p struct {
		fx.In
		A *fxlock.Lock `name:"a"`
		B *fxlock.Lock `name:"b"`
		C *fxlock.Lock `name:"c"`
	}
	store := fxlock.NewMemoryStore()
	bad := newSpyStore(new(journal))
	bad.release = func() (bool, error) { return false, errRelease }
	app := fx.New(fx.NopLogger, fx.Populate(&p),
		fxlock.Module("a", fxlock.Named(), fxlock.WithStore(store)),
		fxlock.Module("b", fxlock.Named(), fxlock.WithStore(bad)),
		fxlock.Module("c", fxlock.Named(), fxlock.WithStore(store)))
	must(t, app.Start(t.Context()))
	for _, lock := range []*fxlock.Lock{p.A, p.B, p.C} {
		if ok, err := lock.Acquire(t.Context()); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	err := app.Stop(t.Context())
	wantIs(t, err, errRelease)
	wantText(t, err, `release "b"`)
	for _, k := range []string{"a", "c"} {
		if lease, err := store.Inspect(t.Context(), k); lease.Token != 0 || err != nil {
			t.Errorf("%s is still held: %+v, %v", k, lease, err)
		}
	}
}

// When the application can't be built or started, nothing is held.
func TestCase_S04_NothingIsHeldAfterAFailedStart(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var j journal
		module := func(k string) fx.Option {
			return fxlock.Module(k, fxlock.WithStore(newSpyStore(&j)), fxlock.Body[Nightly](func() error { return nil }))
		}
		needs := fx.Invoke(func(*fxlock.Lock, Nightly) {})
		wantIs(t, newErr(module(key), needs, fx.Invoke(func() error { return errBody })), errBody)

		fails := fx.New(fx.NopLogger, module(key), needs, fx.Invoke(func(lc fx.Lifecycle) {
			lc.Append(fx.StartHook(func() error { return errStart }))
		}))
		wantIs(t, fails.Start(t.Context()), errStart)

		late := fx.New(fx.NopLogger, module(key), needs, fx.Invoke(func(lc fx.Lifecycle) {
			lc.Append(fx.StartHook(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }))
		}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantIs(t, late.Start(ctx), context.DeadlineExceeded)
		time.Sleep(ttl)
		j.expect(t) // not one request
	})
}

// When an earlier hook uses up the time and fx skips the lock's, the run releases
// by itself.
func TestCase_S05_ASkippedHookStillReleases(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var j journal
		store := newSpyStore(&j)
		var lock *fxlock.Lock
		skipped := true
		app := fx.New(fx.NopLogger, fx.Populate(&lock),
			fxlock.Module(key, fxlock.WithStore(store), fxlock.Observer(func(e lockfx.Event) {
				skipped = skipped && e.Kind != lockfx.EventDisposed
			})),
			fx.Invoke(func(lc fx.Lifecycle, _ *fxlock.Lock) {
				lc.Append(fx.StopHook(func(ctx context.Context) { <-ctx.Done() }))
			}))
		must(t, app.Start(t.Context()))
		end, done := make(chan struct{}), make(chan error, 1)
		go func() { done <- lock.Run(t.Context(), func() { <-end }) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantIs(t, app.Stop(ctx), context.DeadlineExceeded)
		time.Sleep(10 * ttl)
		if !skipped || !lock.Held() {
			t.Errorf("the hook was skipped: %v; held: %v", skipped, lock.Held())
		}
		close(end)
		noError(t, <-done)
		if !store.free() {
			t.Error("the key is still held")
		}
		j.expect(t, "acquire", "release")
	})
}

// A value built after the lock is not closed under a body that uses it.
func TestCase_D01_WhatABodyUsesStopsAfterIt(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var j journal
		var lock *fxlock.Lock
		var nightly Nightly
		app := fx.New(fx.NopLogger, fx.Populate(&lock), // the lock is built first
			fxlock.Module(key, fxlock.WithStore(newSpyStore(&j)), fxlock.Body[Nightly](func(ctx context.Context, _ *DB) error {
				<-ctx.Done()
				wantIs(t, context.Cause(ctx), lockfx.ErrDisposed)
				time.Sleep(time.Second)
				j.add("body ends")
				return nil
			})),
			fx.Provide(func(lc fx.Lifecycle) *DB {
				lc.Append(fx.StopHook(func() { j.add("db closes") }))
				return newDB()
			}),
			fx.Populate(&nightly))
		must(t, app.Start(t.Context()))
		done := make(chan error, 1)
		go func() { done <- nightly(t.Context()) }()
		synctest.Wait()
		must(t, app.Stop(t.Context()))
		noError(t, <-done)
		j.expect(t, "acquire", "body ends", "release", "db closes")
	})
}

// Runs leave nothing behind in the container, also when they overlap.
func TestCase_D02_RunsLeaveNothingBehind(t *testing.T) {
	store := fxlock.NewMemoryStore()
	var bodies []Nightly
	for _, k := range []string{"a", "b"} {
		var nightly Nightly
		started(t, fx.Provide(newDB), fx.Populate(&nightly), fxlock.Module(k, fxlock.WithStore(store),
			fxlock.PerRun(newWriter), fxlock.Body[Nightly](func(*Writer) error { return nil })))
		bodies = append(bodies, nightly)
	}
	runs := func(n int) {
		done := make(chan error)
		for _, nightly := range bodies {
			go func() {
				var err error
				for range n {
					err = errors.Join(err, nightly(context.Background()))
				}
				done <- err
			}()
		}
		for range bodies {
			must(t, <-done)
		}
	}
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	runs(10)
	before := heap()
	const n = 500
	runs(n)
	if perRun := float64(heap()-before) / (2 * n); perRun > 1000 { // a child scope leaves 10 kB
		t.Errorf("a run leaves %.0f bytes behind", perRun)
	}
}

// The application's own context in the graph does not reach a body.
func TestCase_D03_TheRunsContextShadowsTheApplications(t *testing.T) {
	var nightly Nightly
	lockIn(t, fxlock.NewMemoryStore(), options(fxlock.Body[Nightly](func(ctx context.Context, token lockfx.Token) error {
		if ctx.Value(appKey{}) != nil || token < 1 || lockfx.TokenFrom(ctx) != token {
			t.Errorf("the body got the application's context %v, token %v", ctx, token)
		}
		return nil
	})), appOwns(), fx.Populate(&nightly))
	must(t, nightly(t.Context()))
}

// A hook that a run's constructor appends belongs to the run.
func TestCase_D04_ARunsHooksRun(t *testing.T) {
	var j journal
	lock := lockIn(t, newSpyStore(&j), options(fxlock.PerRun(func(lc fx.Lifecycle) *DB {
		lc.Append(fx.StartStopHook(func() { j.add("start") }, func() { j.add("stop") }))
		return newDB()
	})))
	for range 2 {
		must(t, lock.Run(t.Context(), func(*DB) { j.add("body") }))
	}
	once := []string{"acquire", "start", "body", "stop", "release"}
	j.expect(t, append(once, once...)...)
}

// Two unnamed locks: the error says where both are.
func TestCase_D05_TwoUnnamedLocksAreToldWithBothLines(t *testing.T) {
	first, second := here(2), here(3)
	wantText(t, newErr(
		fxlock.Module("a", memory()),
		fxlock.Module("b", memory()),
	), first, second, "an unnamed *fxlock.Lock", "give every additional module fxlock.Named()", "already provided by")
}
