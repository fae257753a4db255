package fxlock_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/fx"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

func TestScope_ResolvesWhatTheRunHas(t *testing.T) {
	var j journal
	lock := lockIn(t, newSpyStore(&j), options(
		fxlock.Share[*DB](), fxlock.Share[*DB]("replica"), fxlock.ShareGroup[Route]("routes"),
		fxlock.PerRun(func(lc fx.Lifecycle, db *DB, token lockfx.Token) *Writer {
			lc.Append(fx.StartStopHook(func() { j.add("start") }, func() { j.add("stop") }))
			return &Writer{db, token}
		})), manyValues())
	must(t, lock.Run(t.Context(), func(s *fxlock.Scope, token lockfx.Token) error {
		j.add("body")
		replica, err := fxlock.Get[*DB](s, "replica")
		must(t, err)
		for range 2 {
			w, err := fxlock.Get[*Writer](s)
			must(t, err)
			if w.DB.Name != "app" || w.Token != token || replica.Name != "replica" {
				t.Errorf("writer %+v, replica %v", w, replica)
			}
		}
		j.add("invoke")
		return s.Invoke(func(p struct {
			fx.In
			Routes []Route `group:"routes"`
			None   *Cache  `optional:"true"`
		},
		) error {
			if len(p.Routes) != 1 || p.None != nil {
				t.Errorf("routes %v, cache %v", p.Routes, p.None)
			}
			return nil
		})
	}))
	j.expect(t, "acquire", "body", "start", "invoke", "stop", "release")
}

func TestScope_ErrorsHaveHints(t *testing.T) {
	lock := lockIn(t, fxlock.NewMemoryStore(), nil)
	alone := newLock(t, fxlock.NewMemoryStore())
	never := func(*DB) { t.Error("was called") }
	var in error
	inScope := func(l *fxlock.Lock, f func(s *fxlock.Scope) error) error {
		must(t, l.Run(t.Context(), func(s *fxlock.Scope) { in = f(s) }))
		return in
	}
	for name, tt := range map[string]struct {
		lock *fxlock.Lock
		do   func(s *fxlock.Scope) error
		says []string
	}{
		"not there": {
			lock, func(s *fxlock.Scope) error { return s.Invoke(never) },
			[]string{
				`run "nightly": resolve by hand: invalid configuration: *fxlock_test.DB is not in the scope: `,
				`add fxlock.Share[*fxlock_test.DB]() or fxlock.PerRun to fxlock.Module("nightly")`,
			},
		},
		"not there under that name": {
			lock, func(s *fxlock.Scope) error { return valueErr(fxlock.Get[*DB](s, "r")) },
			[]string{`*fxlock_test.DB[name="r"] is not in the scope: add fxlock.Share[*fxlock_test.DB]("r")`},
		},
		"not in that group": {
			lock, func(s *fxlock.Scope) error {
				return s.Invoke(func(struct {
					fx.In
					Routes []Route `group:"routes"`
				}) {
				})
			},
			[]string{`add fxlock.ShareGroup[fxlock_test.Route]("routes")`},
		},
		"without an application": {
			alone, func(s *fxlock.Scope) error { return s.Invoke(never) },
			[]string{`*fxlock_test.DB is not in the scope: add fxlock.PerRun to fxlock.New("nightly"), or use fxlock.Module`},
		},
		"nil":       {lock, func(s *fxlock.Scope) error { return s.Invoke(nil) }, []string{`run "nightly": invoke: `, "must be a function, and is nil"}},
		"a value":   {lock, func(s *fxlock.Scope) error { return s.Invoke(func() int { return 1 }) }, []string{"must return nothing or an error"}},
		"two names": {lock, func(s *fxlock.Scope) error { return valueErr(fxlock.Get[*DB](s, "a", "b")) }, []string{`fxlock.Get takes one name at most, not "a", "b"`}},
		"no parameter object": {
			lock, func(s *fxlock.Scope) error { return s.Invoke(func(error) {}) },
			[]string{"resolve by hand: "},
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := inScope(tt.lock, tt.do)
			wantText(t, err, tt.says...)
			var scope *lockfx.ScopeError
			if !errors.As(err, &scope) || scope.Key != key {
				t.Errorf("%v is no ScopeError", err)
			}
		})
	}
	if err := inScope(lock, func(s *fxlock.Scope) error { return s.Invoke(func() error { return errBody }) }); !identical(err, errBody) {
		t.Errorf("the error of the function is %v, want it as it is", err)
	}
}

// After a hook that failed, what it belongs to is not handed out as if it had
// started.
func TestScope_FailsForGoodAfterAFailedHook(t *testing.T) {
	for name, start := range map[string]func() error{
		"fails":  func() error { return errStart },
		"panics": func() error { panic(errStart) },
	} {
		t.Run(name, func(t *testing.T) {
			var j journal
			lock := newLock(t, newSpyStore(&j), fxlock.PerRun(
				func(lc fx.Lifecycle) *Cache {
					lc.Append(fx.Hook{
						OnStart: func(context.Context) error { j.add("start"); return start() },
						OnStop:  func(context.Context) error { j.add("stop"); return nil },
					})
					return new(Cache)
				}))
			must(t, lock.Run(t.Context(), func(s *fxlock.Scope) {
				for range 2 {
					v, err := fxlock.Get[*Cache](s)
					wantText(t, err, `run "nightly": start what was resolved by hand: OnStart hook: `, errStart.Error())
					if v != nil {
						t.Error("got a value that has not started")
					}
				}
			}))
			j.expect(t, "acquire", "start", "release")
		})
	}
}

// Who resolves what another goroutine is still starting waits for it.
func TestScope_IsSafeForConcurrentUse(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var j journal
		ready := false
		lock := newLock(t, newSpyStore(&j), fxlock.PerRun(func(lc fx.Lifecycle) *Cache {
			lc.Append(fx.StartStopHook(
				func() { time.Sleep(time.Second); ready = true; j.add("start") },
				func() { j.add("stop") }))
			return new(Cache)
		}))
		must(t, lock.Run(t.Context(), func(s *fxlock.Scope) {
			var wg sync.WaitGroup
			for range 10 {
				wg.Go(func() {
					if _, err := fxlock.Get[*Cache](s); err != nil || !ready {
						t.Errorf("got a value that is not ready: %v", err)
					}
				})
			}
			wg.Wait()
		}))
		j.expect(t, "acquire", "start", "stop", "release")
	})
}

// A goroutine that a body leaves behind can't build what nobody would stop.
func TestScope_ResolvesNothingAfterTheRun(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var j journal
		lock := newLock(t, newSpyStore(&j), fxlock.PerRun(
			func(lc fx.Lifecycle) *Cache {
				lc.Append(fx.StartStopHook(func() { j.add("start late") }, func() { j.add("stop late") }))
				return new(Cache)
			},
			func(lc fx.Lifecycle) *Writer {
				lc.Append(fx.StopHook(func() { j.add("stop"); time.Sleep(time.Second) }))
				return new(Writer)
			}))
		got := make(chan error, 1)
		must(t, lock.Run(t.Context(), func(s *fxlock.Scope, _ *Writer) {
			go func() {
				time.Sleep(500 * time.Millisecond) // in the middle of the teardown
				got <- valueErr(fxlock.Get[*Cache](s))
			}()
		}))
		wantText(t, <-got, "the scope is closed")
		j.expect(t, "acquire", "stop", "release")
	})
}

// A hook that resolves by hand would wait for itself; it is told so in the end.
func TestScope_RefusesAHookThatResolves(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		lock := newLock(t, fxlock.NewMemoryStore(), fxlock.PerRun(
			func(lc fx.Lifecycle, s *fxlock.Scope) *Writer {
				lc.Append(fx.StartHook(func() error { return valueErr(fxlock.Get[*Cache](s)) }))
				return new(Writer)
			},
			func(lc fx.Lifecycle) *Cache { lc.Append(fx.StartHook(func() {})); return new(Cache) }),
			fxlock.WithTeardownTimeout(time.Minute))
		start := time.Now()
		err := lock.Run(t.Context(), func(*Writer) { t.Error("the body ran") })
		wantIs(t, err, lockfx.ErrTimeout)
		wantText(t, err, "a hook that resolves by hand")
		if took := time.Since(start); took != time.Minute {
			t.Errorf("it took %v", took)
		}
	})
}

// What ends the goroutine of a body in a function called by hand is torn down too.
func TestScope_TearsDownAfterAPanicOrExit(t *testing.T) {
	for name, f := range map[string]func(){"panic": func() { panic(errBody) }, "exit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			var j journal
			lock := newLock(t, newSpyStore(&j))
			e := endingOf(func() error {
				return lock.Run(t.Context(), func(s *fxlock.Scope, lc fx.Lifecycle) error {
					lc.Append(fx.StopHook(func() { j.add("stop") }))
					return s.Invoke(f)
				})
			})
			if e.panics == nil && !e.exited {
				t.Errorf("ended with %+v", e)
			}
			j.expect(t, "acquire", "stop", "release")
		})
	}
}

// A caller that gives up while the scope is built has its body not run, whether
// there are hooks to start or not.
func TestRun_BodyNeverBeginsAfterItsCallerGaveUp(t *testing.T) {
	var j journal
	ctx, cancel := context.WithCancelCause(t.Context())
	lock := newLock(t, newSpyStore(&j), fxlock.PerRun(func() *DB { cancel(errWhy); return newDB() }))
	err := lock.Run(ctx, func(*DB) { t.Error("the body ran") })
	wantIs(t, err, errWhy)
	wantText(t, err, `run "nightly": start the body: `)
	j.expect(t, "acquire", "release")
}

// The context of a hook that stops ends with the teardown timeout.
func TestTeardown_IsBounded(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var j journal
		lock := newLock(t, newSpyStore(&j), fxlock.WithTeardownTimeout(2*time.Minute))
		err := lock.Run(t.Context(), func(lc fx.Lifecycle, h lockfx.Holder) {
			lc.Append(fx.StopHook(func() { j.add("next hook") }))
			lc.Append(fx.StopHook(func(ctx context.Context) error {
				<-ctx.Done()
				if !h.Held() { // four leases long
					t.Error("the lease was not renewed")
				}
				return context.Cause(ctx)
			}))
			synctest.Wait()
		})
		wantText(t, err, `run "nightly": tear the scope down: OnStop hook: timed out: the teardown timeout of 2m0s is over`)
		wantIs(t, err, lockfx.ErrTimeout)
		j.expect(t, "acquire", "next hook", "release")
	})
}

// The context of a hook that stops also ends with the loss of the lease under it. Where
// the lease was lost before, hooks have their time to clean up.
func TestTeardown_IsCancelledByALoss(t *testing.T) {
	for name, loses := range map[string]string{"before": "body", "in the middle": "hook"} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				store := newSpyStore(&journal{})
				lock := newLock(t, store)
				var away atomic.Bool
				store.renew = func() error {
					if away.Load() {
						return errWhy
					}
					return nil
				}
				lose := func(at string) {
					if at == loses {
						away.Store(true)
						time.Sleep(ttl)
					}
				}
				err := lock.Run(t.Context(), func(lc fx.Lifecycle) {
					lc.Append(fx.StopHook(func(ctx context.Context) error {
						lose("hook")
						var lost *lockfx.LostError
						if ended := errors.As(context.Cause(ctx), &lost); ended != (loses == "hook") {
							t.Errorf("the hook's context ended by %v", context.Cause(ctx))
						}
						return nil
					}))
					lose("body")
				})
				wantIs(t, err, lockfx.ErrLost, errWhy)
			})
		})
	}
}
