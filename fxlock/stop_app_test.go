package fxlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/fx"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

// stopTimeout is what fx gives the hooks of an application.
const stopTimeout = 15 * time.Second

// stopWithin stops app as fx.App.Run does, and returns how long it took.
func stopWithin(t *testing.T, app *fx.App, d time.Duration) (time.Duration, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	begun := time.Now()
	err := app.Stop(ctx)
	took := time.Since(begun)
	synctest.Wait() // fx does not wait for a hook that is late
	return took, err
}

// work is something that goes on under a lock of an application.
type work struct {
	app []fx.Option
	run func() error // nil for what begins with the application
}

// works returns all kinds of work. until is what a body does: it returns when its context
// has ended.
func works(t *testing.T, until func(context.Context) error) map[string]work {
	store := fxlock.NewMemoryStore()
	named := func(name string, opts ...fxlock.Option) fx.Option {
		return fxlock.Module(name, append(opts, fxlock.Named(), fxlock.WithStore(store))...)
	}
	var lock struct {
		fx.In
		*fxlock.Lock `name:"lock"`
	}
	var nightly Nightly
	do := func(opts ...fxlock.RunOption) func() error {
		return func() error {
			return lock.Do(context.Background(), func(ctx context.Context, _ lockfx.Holder) error { return until(ctx) }, opts...)
		}
	}
	held := newLock(t, store, fxlock.WithKey("held"))
	if ok, err := held.Acquire(t.Context()); !ok || err != nil {
		t.Fatal(ok, err)
	}
	call := func() error { return nightly(context.Background()) }
	return map[string]work{
		"Do":           {[]fx.Option{named("lock"), fx.Populate(&lock)}, do()},
		"a bound lock": {[]fx.Option{fxlock.Bind("lock", newLock(t, store, fxlock.WithKey("bound"))), fx.Populate(&lock)}, do()},
		"a Body":       {[]fx.Option{named("body", fxlock.Body[Nightly](until)), fx.Populate(&nightly)}, call},
		"a condition": {[]fx.Option{named("condition", fxlock.Body[Nightly](until, fxlock.If(func(ctx context.Context) (bool, error) {
			return false, until(ctx)
		}))), fx.Populate(&nightly)}, call},
		"a condition of Do": {[]fx.Option{named("lock"), fx.Populate(&lock)}, do(fxlock.If(func(ctx context.Context) (bool, error) {
			return false, until(ctx)
		}))},
		"a wait": {[]fx.Option{named("lock", fxlock.WithKey("held")), fx.Populate(&lock)}, func() error {
			return errors.Join(do(fxlock.WaitForever())(), until(cancelled()))
		}},
		"a campaign":              {[]fx.Option{named("leader", fxlock.Lead(until))}, nil},
		"a module in a module":    {[]fx.Option{fx.Module("a", fx.Module("b", named("leader", fxlock.Lead(until))))}, nil},
		"a private lock":          {[]fx.Option{fx.Module("a", named("leader", fxlock.Private(), fxlock.Lead(until)))}, nil},
		"a lock that is replaced": {[]fx.Option{named("lock"), fx.Populate(&lock), fx.Decorate(fx.Annotate(func(l *fxlock.Lock) *fxlock.Lock { return l }, fx.ParamTags(`name:"lock"`), fx.ResultTags(`name:"lock"`)))}, do()},
	}
}

// cancelled returns a context that has ended.
func cancelled() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(lockfx.ErrDisposed)
	return ctx
}

// The hook of one lock tells the work of all others.
func TestStop_IsHeardByAllWorkOfTheApplication(t *testing.T) {
	for name := range works(t, untilToldTo) {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				var heard moments
				w := works(t, func(ctx context.Context) error {
					<-ctx.Done()
					wantIs(t, context.Cause(ctx), lockfx.ErrDisposed)
					heard.note()
					return nil
				})[name]
				app := fx.New(append(w.app, fx.NopLogger, fxlock.Module("last", fxlock.Named(), memory(), fxlock.Lead(func(ctx context.Context) {
					<-ctx.Done()
					time.Sleep(time.Second)
					if heard.count() != 1 {
						t.Errorf("%d heard of the stop", heard.count())
					}
				})))...)
				must(t, app.Start(t.Context()))
				done := make(chan error, 1)
				if w.run != nil {
					go func() { done <- w.run() }()
				}
				pass(time.Minute)
				took, err := stopWithin(t, app, stopTimeout)
				if err != nil || took != time.Second {
					t.Errorf("the stop took %v, with %v", took, err)
				}
				if w.run != nil {
					synctest.Wait()
					select {
					case err := <-done:
						if err != nil && !errors.Is(err, lockfx.ErrDisposed) && !errors.Is(err, lockfx.ErrSkipped) {
							t.Error(err)
						}
					default:
						t.Fatal("it has not ended")
					}
				}
			})
		})
	}
}

// The stop of one application is none of another one in the process, not even if both are
// made of the same options.
func TestStop_IsNotHeardByOtherApplications(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		ended := make(chan string, 2)
		store := fxlock.NewMemoryStore()
		options := fxlock.Module(key, fxlock.WithStore(store), fxlock.Lead(func(ctx context.Context) { <-ctx.Done(); ended <- "shared" }))
		single := fxlock.Module("single", fxlock.Named(), fxlock.WithStore(store), fxlock.Lead(func(ctx context.Context) { <-ctx.Done(); ended <- "single" }))
		one, other := fx.New(fx.NopLogger, options, single), fx.New(fx.NopLogger, options)
		must(t, one.Start(t.Context()))
		pass(time.Minute)
		must(t, other.Start(t.Context()))
		_, err := stopWithin(t, other, stopTimeout)
		must(t, err)
		if len(ended) != 0 {
			t.Errorf("the stop of another application ended %s", <-ended)
		}
		_, err = stopWithin(t, one, stopTimeout)
		must(t, err)
		if len(ended) != 2 {
			t.Errorf("%d campaigns ended with their application", len(ended))
		}
	})
}

// What outlives the stop is in its error, each lock once, though fx says of a stop whose
// time is over only that it is.
func TestStop_NamesEachLockThatOutlivesIt(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		end := make(chan struct{})
		deaf := func() error { <-end; return nil }
		store := fxlock.NewMemoryStore()
		var lock *fxlock.Lock
		var nightly Nightly
		closed := false
		app := fx.New(fx.NopLogger, fx.Populate(&lock),
			fx.Invoke(func(lc fx.Lifecycle) { lc.Append(fx.StopHook(func() { closed = true })) }),
			fxlock.Module("by hand", fxlock.WithStore(store)),
			fxlock.Module("leader", fxlock.Named(), fxlock.WithStore(store), fxlock.Lead(deaf)),
			fxlock.Module("body", fxlock.Named(), fxlock.WithStore(store), fxlock.Body[Nightly](deaf)),
			fxlock.Module("good", fxlock.Named(), fxlock.WithStore(store), fxlock.Lead(untilToldTo)),
			fx.Populate(&nightly))
		must(t, app.Start(t.Context()))
		for _, run := range []func() error{
			func() error { return lock.Run(t.Context(), deaf) },
			func() error { return nightly(t.Context()) },
		} {
			go func() { wantIs(t, run(), lockfx.ErrLost) }()
		}
		pass(0)
		took, err := stopWithin(t, app, stopTimeout)
		if took != stopTimeout-stopTimeout/20 || !closed {
			t.Errorf("the stop took %v, and stopped what comes after the locks: %v", took, closed)
		}
		wantIs(t, err, context.DeadlineExceeded)
		wantText(t, err, "the stop leaves 14.25s for runs to end, see fx.StopTimeout",
			`lead "leader": dispose "leader": the body still runs under token`,
			`dispose "body": the body still runs under token`,
			`dispose "by hand": the body still runs under token`, "its lease is left to expire")
		if n := strings.Count(err.Error(), "still runs under token"); n != 3 || strings.Contains(err.Error(), `"good"`) {
			t.Errorf("%d are named, want 3: %v", n, err)
		}
		pass(ttl)
		for _, k := range []string{"by hand", "leader", "body"} {
			if lease, err := store.Inspect(t.Context(), k); lease.Token != 0 || err != nil {
				t.Errorf("%s is renewed after the stop: %+v, %v", k, lease, err)
			}
		}
		close(end)
		synctest.Wait()
	})
}

// fx skips hooks when one before them has used up the time. Their locks are disposed of all
// the same, and an event says what outlived the stop.
func TestStop_SaysWhatOutlivesItWhereFxSkipsHooks(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		end := make(chan struct{})
		var disposed journal
		var lock *fxlock.Lock
		app := fx.New(fx.NopLogger, fx.Populate(&lock),
			fxlock.Module(key, memory(), fxlock.Observer(func(e lockfx.Event) {
				if e.Kind == lockfx.EventDisposed {
					disposed.add("%v", e.Err)
				}
			})),
			fx.Invoke(func(lc fx.Lifecycle) { lc.Append(fx.StopHook(func(ctx context.Context) { <-ctx.Done() })) }),
			fxlock.Module("first", fxlock.Named(), memory(), fxlock.Lead(untilToldTo)))
		must(t, app.Start(t.Context()))
		done := make(chan error, 1)
		go func() { done <- lock.Run(t.Context(), func() { <-end }) }()
		pass(0)
		_, err := stopWithin(t, app, stopTimeout)
		if !identical(err, context.DeadlineExceeded) {
			t.Errorf("the stop says %v", err)
		}
		wantText(t, errors.New(strings.Join(disposed.all(), "\n")), `dispose "nightly": the body still runs under token`, "see fx.StopTimeout")
		close(end)
		noError(t, <-done)
	})
}

// An application works again after a stop, however that went.
func TestStop_IsForgottenByTheNextStart(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var heard moments
		var lock *fxlock.Lock
		fails := true
		store := fxlock.NewMemoryStore()
		app := fx.New(fx.NopLogger, fx.Populate(&lock),
			fxlock.Module(key, fxlock.WithStore(store)),
			fxlock.Module("leader", fxlock.Named(), fxlock.WithStore(store), fxlock.Lead(func(ctx context.Context) { <-ctx.Done(); heard.note() })),
			fx.Invoke(func(lc fx.Lifecycle) {
				lc.Append(fx.StartHook(func() error {
					if fails {
						return errStart
					}
					return nil
				}))
			}))
		for _, failed := range []bool{false, true, false, true, true, false} {
			fails = failed
			if err := app.Start(t.Context()); errors.Is(err, errStart) != failed {
				t.Fatal(err)
			}
			pass(time.Minute)
			if failed {
				continue
			}
			must(t, lock.Run(t.Context(), func() {}))
			_, err := stopWithin(t, app, stopTimeout)
			must(t, err)
			wantIs(t, lock.Run(t.Context(), func() {}), lockfx.ErrDisposed)
		}
		if heard.count() < 3 {
			t.Errorf("the campaign heard of %d stops", heard.count())
		}
	})
}

// Whoever holds a lock by hand stops later than Drain, and is not deprived of the lease.
func TestDrain_LeavesWhatIsHeldByHandToItsHolder(t *testing.T) {
	for name, blocks := range map[string]bool{"in time": false, "out of time": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				store := newSpyStore(new(journal))
				end := make(chan struct{})
				app := fx.New(fx.NopLogger, fxlock.Module(key, fxlock.WithStore(store)), fx.Invoke(func(lc fx.Lifecycle, lock *fxlock.Lock) {
					lc.Append(fx.StartStopHook(func(ctx context.Context) error {
						_, err := lock.Acquire(ctx)
						return err
					}, func(ctx context.Context) error {
						if blocks {
							<-end
						}
						if !lock.Held() || !store.valid(lock.Token()) {
							t.Error("the lease was released under its holder")
						}
						_, err := lock.Release(ctx)
						return err
					}))
				}), fxlock.Drain())
				must(t, app.Start(t.Context()))
				_, err := stopWithin(t, app, stopTimeout)
				if (err != nil) != blocks {
					t.Error(err)
				}
				if store.free() == blocks {
					t.Errorf("the key is free: %v", store.free())
				}
				close(end)
				synctest.Wait()
				if !store.free() {
					t.Error("the key is held")
				}
			})
		})
	}
}

// A value that a body captures is not closed under it if it is shared with the lock, in
// whatever order a constructor takes the two.
func TestShare_MakesTheLockStopBeforeWhatIsShared(t *testing.T) {
	for name, newReports := range map[string]any{
		"lock first":     func(*fxlock.Lock, *DB) *server { return new(server) },
		"database first": func(*DB, *fxlock.Lock) *server { return new(server) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				var j journal
				var lock *fxlock.Lock
				app := fx.New(fx.NopLogger, fx.Provide(newReports, func(lc fx.Lifecycle) *DB {
					lc.Append(fx.StopHook(func() { j.add("db closes") }))
					return newDB()
				}), fxlock.Module(key, memory(), fxlock.Share[*DB]()), fx.Invoke(func(*server) {}), fx.Populate(&lock))
				must(t, app.Start(t.Context()))
				done := make(chan error, 1)
				go func() {
					done <- lock.Do(t.Context(), func(ctx context.Context, _ lockfx.Holder) error {
						<-ctx.Done()
						time.Sleep(time.Second)
						j.add("body ends")
						return nil
					})
				}()
				synctest.Wait()
				must(t, app.Stop(t.Context()))
				noError(t, <-done)
				j.expect(t, "body ends", "db closes")
			})
		})
	}
}
