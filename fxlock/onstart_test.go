package fxlock_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/fx"
	"go.uber.org/fx/fxevent"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

// Migrated is the marker of a job of the start.
type Migrated struct{}

// migration is a job of the start that takes its time and can be done once.
type migration struct {
	journal
	takes  time.Duration
	done   atomic.Bool
	inside atomic.Int64
}

// pending tells whether it is still needed.
func (m *migration) pending() bool { return !m.done.Load() }

func (m *migration) run(ctx context.Context, token lockfx.Token) error {
	if m.inside.Add(1) != 1 || !token.Valid() || lockfx.TokenFrom(ctx) != token {
		return fmt.Errorf("not alone, or not fenced: %v", token)
	}
	defer m.inside.Add(-1)
	m.add("migrate")
	time.Sleep(m.takes)
	m.done.Store(true)
	return nil
}

// serves is a server that depends on the marker, and opens when it starts.
func (m *migration) serves(lc fx.Lifecycle, _ Migrated) *server {
	m.add("server is built")
	lc.Append(fx.StartStopHook(func() { m.add("server opens") }, func() { m.add("server closes") }))
	return new(server)
}

// The work runs once the application starts: after all constructors, and before the
// hooks of what depends on the marker.
func TestOnStart_RunsBeforeWhatDependsOnIt(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		m, store := new(migration), newSpyStore(new(journal))
		app := fx.New(fx.NopLogger,
			fx.Invoke(func(*server) {}), // asked for first
			fx.Provide(m.serves),
			fxlock.Module("migrations", fxlock.WithStore(store), fxlock.OnStart[Migrated](m.run)))
		must(t, app.Err())
		m.expect(t, "server is built")
		must(t, app.Start(t.Context()))
		if !store.free() {
			t.Error("the lock was not released")
		}
		must(t, app.Stop(t.Context()))
		m.expect(t, "server is built", "migrate", "server opens", "server closes")

		must(t, app.Start(t.Context())) // and again
		must(t, app.Stop(t.Context()))
		m.expect(t, "server is built", "migrate", "server opens", "server closes", "migrate", "server opens", "server closes")
	})
}

// Nobody takes the marker, and the work is done all the same.
func TestOnStart_RunsWithoutAConsumer(t *testing.T) {
	for name, module := range map[string]func(fx.Option) fx.Option{
		"open":    func(o fx.Option) fx.Option { return o },
		"private": func(o fx.Option) fx.Option { return fx.Module("feature", o) },
	} {
		t.Run(name, func(t *testing.T) {
			m := new(migration)
			opts := options(memory(), fxlock.OnStart[Migrated](m.run))
			if name == "private" {
				opts = append(opts, fxlock.Private())
			}
			started(t, module(fxlock.Module(key, opts...)))
			m.expect(t, "migrate")
		})
	}
}

// Three replicas start at once. They work one at a time, and whoever comes later
// finds that it is not needed any more.
func TestOnStart_ReplicasWorkOneAtATime(t *testing.T) {
	for name, tt := range map[string]struct {
		opts []fxlock.RunOption
		want []string
	}{
		"each of them": {nil, []string{"migrate", "migrate", "migrate"}},
		"the first":    {[]fxlock.RunOption{fxlock.If(func(m *migration) bool { return m.pending() })}, []string{"migrate"}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				m, store := &migration{takes: 4 * time.Second}, fxlock.NewMemoryStore()
				errs := make(chan error)
				const replicas = 3
				for range replicas {
					app := fx.New(fx.NopLogger, fx.Supply(m), fxlock.Module(key, fxlock.WithStore(store), fxlock.OnStart[Migrated](m.run, tt.opts...)))
					go func() {
						ctx, cancel := context.WithTimeout(t.Context(), app.StartTimeout())
						defer cancel()
						errs <- errors.Join(app.Start(ctx), app.Stop(ctx))
					}()
				}
				for range replicas {
					noError(t, <-errs)
				}
				m.expect(t, tt.want...)
			})
		})
	}
}

// The start fails with the cause, nothing after the work starts, and nothing is held.
func TestOnStart_ErrorFailsTheStart(t *testing.T) {
	for name, tt := range map[string]struct {
		fn   func(context.Context) error
		opts []fxlock.RunOption
		want []string
	}{
		"of the work": {func(context.Context) error { return errBody }, nil, []string{"body-fault"}},
		"of the predicate": {
			nil,
			[]fxlock.RunOption{fxlock.If(func() (bool, error) { return false, errBody })},
			[]string{"evaluate the condition", "body-fault"},
		},
		"goexit": {func(context.Context) error { runtime.Goexit(); return nil }, nil, []string{"goroutine exited without returning"}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				m, store := new(migration), newSpyStore(new(journal))
				if tt.fn == nil {
					tt.fn = func(context.Context) error { t.Error("the work ran"); return nil }
				}
				app := fx.New(fx.NopLogger, fx.Provide(m.serves), fx.Invoke(func(*server) {}),
					fxlock.Module("migrations", fxlock.WithStore(store), fxlock.WithKey(key), fxlock.OnStart[Migrated](tt.fn, tt.opts...)))
				err := app.Start(t.Context())
				wantText(t, err, tt.want...)
				if name != "goexit" {
					wantIs(t, err, errBody)
					wantText(t, err, "fxlock.OnStart[fxlock_test.Migrated](", `) of lock "migrations": `)
				}
				if !store.free() {
					t.Error("the key is held after a failed start")
				}
				m.expect(t, "server is built")
				noError(t, app.Stop(t.Context()))
			})
		})
	}
}

// After a start that failed the application can be started again.
func TestOnStart_FailedStartCanBeTriedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var fails atomic.Bool
		fails.Store(true)
		m := new(migration)
		app := fx.New(fx.NopLogger, fxlock.Module(key, memory(), fxlock.OnStart[Migrated](func(ctx context.Context, token lockfx.Token) error {
			if fails.Load() {
				return errBody
			}
			return m.run(ctx, token)
		})))
		wantIs(t, app.Start(t.Context()), errBody)
		fails.Store(false)
		must(t, app.Start(t.Context()))
		m.expect(t, "migrate")
		must(t, app.Stop(t.Context()))
	})
}

// inItsTime starts app within its start timeout, as fx.App.Run does.
func inItsTime(app *fx.App) error {
	ctx, cancel := context.WithTimeout(context.Background(), app.StartTimeout())
	defer cancel()
	return app.Start(ctx)
}

// The lock is not to be had in the time of the start: the start says who is in the
// way, which it could not if its context had ended.
func TestOnStart_TimeoutSaysWhatItWaitedFor(t *testing.T) {
	for name, tt := range map[string]struct {
		timeout time.Duration
		opts    []fxlock.RunOption
		waits   time.Duration
		says    string
	}{
		"long":  {time.Minute, nil, 59 * time.Second, "stopped waiting after 59s: context deadline exceeded: the start leaves 59s for the wait and the work, see fx.StartTimeout"},
		"short": {time.Second, nil, 950 * time.Millisecond, "the start leaves 950ms"},
		"Wait":  {time.Minute, []fxlock.RunOption{fxlock.Wait(7 * time.Second)}, 7 * time.Second, "the wait limit is 7s"},
		"none":  {time.Minute, []fxlock.RunOption{fxlock.Wait(0)}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				store := newSpyStore(new(journal))
				other := newLock(t, store, fxlock.WithLabel("web-1"))
				if ok, err := other.Acquire(t.Context()); !ok || err != nil {
					t.Fatal(ok, err)
				}
				app := fx.New(fx.NopLogger, fx.StartTimeout(tt.timeout), fxlock.Module(key, fxlock.WithStore(store),
					fxlock.OnStart[Migrated](func() { t.Error("the work ran") }, tt.opts...)))
				begun := time.Now()
				err := inItsTime(app)
				wantIs(t, err, lockfx.ErrNotAcquired)
				wantText(t, err, `of lock "nightly"`, "held by web-1", tt.says)
				if took := time.Since(begun); took != tt.waits {
					t.Errorf("it waited %v, want %v", took, tt.waits)
				}
			})
		})
	}
}

// A start that is cancelled ends its waiting at once, and leaves nothing behind.
func TestOnStart_CancelledStartEndsTheWait(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := newSpyStore(new(journal))
		other := newLock(t, store)
		if ok, err := other.Acquire(t.Context()); !ok || err != nil {
			t.Fatal(ok, err)
		}
		app := fx.New(fx.NopLogger, fxlock.Module(key, fxlock.WithStore(store), fxlock.OnStart[Migrated](func() { t.Error("the work ran") })))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- app.Start(ctx) }()
		pass(time.Hour)
		cancel()
		wantIs(t, <-done, context.Canceled)
		synctest.Wait()
		_, err := other.Release(t.Context())
		noError(t, err)
		pass(time.Hour)
		if !store.free() {
			t.Error("somebody still waited")
		}
	})
}

// The start's time ends while the work runs. The work is told, and gives the lease
// back. One that is deaf keeps it for as long as it works, and no longer: others
// must not work meanwhile.
func TestOnStart_TimeoutNeverLeavesTheLease(t *testing.T) {
	for name, tt := range map[string]struct {
		fn    func(ctx context.Context, release <-chan struct{}) error
		keeps bool
	}{
		"heeds": {func(ctx context.Context, _ <-chan struct{}) error { <-ctx.Done(); return ctx.Err() }, false},
		"deaf":  {func(_ context.Context, release <-chan struct{}) error { <-release; return nil }, true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				store, release := newSpyStore(new(journal)), make(chan struct{})
				var j journal
				app := fx.New(fx.StartTimeout(10*time.Second),
					fx.WithLogger(func() fxevent.Logger { return startErrors{&j} }),
					fxlock.Module(key, fxlock.WithStore(store), fxlock.OnStart[Migrated](func(ctx context.Context) error {
						return tt.fn(ctx, release)
					})))
				err := inItsTime(app)
				wantIs(t, err, context.DeadlineExceeded)
				if !tt.keeps {
					wantText(t, err, "fxlock.OnStart[fxlock_test.Migrated]", "fx.StartTimeout")
				}
				pass(10 * ttl)
				if store.free() == tt.keeps {
					t.Errorf("the key is free: %v", store.free())
				}
				close(release)
				synctest.Wait()
				if !store.free() {
					t.Error("the lease was left behind")
				}
				if !tt.keeps {
					j.expect(t, `fxlock.OnStart[fxlock_test.Migrated](fxlock_test.TestOnStart_TimeoutNeverLeavesTheLease.func3.1.2) of lock "nightly": `+
						"context deadline exceeded: the start leaves 9.5s for the wait and the work, see fx.StartTimeout: context deadline exceeded")
				}
			})
		})
	}
}

// startErrors notes the errors of start hooks, as the log of fx has them.
type startErrors struct{ *journal }

func (s startErrors) LogEvent(e fxevent.Event) {
	if started, ok := e.(*fxevent.OnStartExecuted); ok && started.Err != nil {
		s.add("%v", started.Err)
	}
}

// Nothing is held when another part of the start fails, before or after the work.
func TestCase_S04_NothingIsHeldWhenTheStartFailsElsewhere(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		for _, after := range []bool{false, true} {
			var j journal
			fails := fx.Invoke(func(lc fx.Lifecycle) { lc.Append(fx.StartHook(func() error { return errStart })) })
			module := fxlock.Module(key, fxlock.WithStore(newSpyStore(&j)), fxlock.OnStart[Migrated](func() {}))
			opts, want := fx.Options(fails, module), []string{}
			if after {
				opts, want = fx.Options(module, fails), []string{"acquire", "release"}
			}
			wantIs(t, fx.New(fx.NopLogger, opts).Start(t.Context()), errStart)
			j.expect(t, want...)
		}
	})
}

// A test of an application puts a marker in the place of the work.
func TestOnStart_ReplacedMarkerSkipsTheWork(t *testing.T) {
	m := new(migration)
	started(t, fxlock.Module(key, memory(), fxlock.OnStart[Migrated](m.run)), fx.Replace(Migrated{}),
		fx.Provide(m.serves), fx.Invoke(func(*server) {}))
	m.expect(t, "server is built", "server opens")
}

// A function with variadic parameters gets none, as anywhere in fx.
func TestOnStart_TakesAVariadicFunction(t *testing.T) {
	var j journal
	started(t, fxlock.Module(key, memory(), fxlock.OnStart[Migrated](func(_ *DB, more ...string) { j.add("%d more", len(more)) })), fx.Provide(newDB))
	j.expect(t, "0 more")
}

// A module may have several jobs, and a leader whose term follows them.
func TestOnStart_RunsBeforeALeadThatTakesItsMarker(t *testing.T) {
	type Seeded struct{}
	inBubble(t, func(t *testing.T) {
		var j journal
		started(t, fxlock.Module(key, memory(),
			fxlock.Lead(func(ctx context.Context, _ Seeded) error { j.add("lead"); return untilToldTo(ctx) }),
			fxlock.OnStart[Seeded](func(Migrated) { j.add("seed") }),
			fxlock.OnStart[Migrated](func() { j.add("migrate") })))
		synctest.Wait()
		j.expect(t, "migrate", "seed", "lead")
	})
}

func TestOnStart_RejectsMistakes(t *testing.T) {
	for name, tt := range map[string]struct {
		opt  fxlock.Option
		want []string
	}{
		"no function":   {fxlock.OnStart[Migrated](nil), []string{"fxlock.OnStart[fxlock_test.Migrated](<nil>)", "must have a function to run"}},
		"results":       {fxlock.OnStart[Migrated](func() int { return 1 }), []string{"func() int must return nothing or an error"}},
		"an option":     {fxlock.OnStart[Migrated](func() {}, fxlock.Wait(-1)), []string{"fxlock.Wait(-1ns): must not be negative"}},
		"no own marker": {fxlock.OnStart[struct{}](func() {}), []string{"struct {} must be a marker type that you define"}},
		"a number":      {fxlock.OnStart[int](func() {}), []string{"int must be a marker type that you define"}},
		"a pointer":     {fxlock.OnStart[*Migrated](func() {}), []string{"*fxlock_test.Migrated must be a marker type that you define"}},
		"an interface":  {fxlock.OnStart[fmt.Stringer](func() {}), []string{"fmt.Stringer must be a marker type that you define"}},
		"in vain": {fxlock.OnStart[Migrated](func(*DB) {}), []string{
			"lock nightly, fxlock.OnStart[fxlock_test.Migrated]; if a type is missing: fx.Provide it",
			"missing type: *fxlock_test.DB", "onstart_test.go:",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			wantText(t, newErr(fxlock.Module(key, tt.opt, memory())), tt.want...)
		})
	}
	first, second := here(2), here(3)
	wantText(t, newErr(
		fxlock.Module("a", memory(), fxlock.OnStart[Migrated](func() {})),
		fxlock.Module("b", memory(), fxlock.OnStart[Migrated](func() {}), fxlock.Named()),
	), first, second, "fxlock_test.Migrated", "already provided by")
}
