package fxlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/fx"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

var errCleanup = errors.New("cleanup-fault")

// afterFn are the faults of a run that come after its function has returned: each is a
// store, and a constructor of a *Writer that the function takes.
var afterFn = map[string]func() (lockfx.Store, any){
	"release": func() (lockfx.Store, any) {
		store := newSpyStore(new(journal))
		store.release = func() (bool, error) { return false, errCleanup }
		return store, func() *Writer { return new(Writer) }
	},
	"release of an unknown token": func() (lockfx.Store, any) {
		store := newSpyStore(new(journal))
		store.release = func() (bool, error) { return false, nil }
		return store, func() *Writer { return new(Writer) }
	},
	"teardown": func() (lockfx.Store, any) {
		return fxlock.NewMemoryStore(), func(lc fx.Lifecycle) *Writer {
			lc.Append(fx.StopHook(func() error { return errCleanup }))
			return new(Writer)
		}
	},
	"loss during the teardown": func() (lockfx.Store, any) {
		store := fxlock.NewMemoryStore()
		return store, func(ctx context.Context, lc fx.Lifecycle) *Writer {
			lc.Append(fx.StopHook(func() {
				_, _ = store.Break(context.Background(), key)
				<-ctx.Done() // a heartbeat notices
			}))
			return new(Writer)
		}
	},
}

// What becomes of the lease after fn has returned nil does not make fn run again.
func TestOneTerm_IsOverOnceFnHasReturnedNil(t *testing.T) {
	for name, fault := range afterFn {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				var terms atomic.Int64
				store, newWriter := fault()
				c := campaigns(t, store, func(*Writer) { terms.Add(1) }, fxlock.OneTerm(), fxlock.PerRun(newWriter))
				pass(3 * time.Minute)
				if n := terms.Load(); n != 1 {
					t.Errorf("fn ran %d times", n)
				}
				noError(t, c.Check(t.Context()))
			})
		})
	}
}

// A term is judged by its function: the pauses after terms that went well do not grow,
// whatever becomes of their leases.
func TestLead_AGoodTermIsNoFailedOne(t *testing.T) {
	for name, fault := range afterFn {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				var began moments
				store, newWriter := fault()
				c := newCandidate(store, func(*Writer) { began.note() }, fxlock.PerRun(newWriter), fxlock.WithTTL(2*time.Second))
				c.Subscribe(func(e fxlock.LeadershipEvent) {
					switch {
					case e.Err != nil && e.Change != fxlock.LeadershipLost:
						t.Errorf("the term failed of %v", e.Err)
					case e.Change == fxlock.LeadershipEnded && e.Cleanup == nil:
						t.Error("nobody hears of the fault")
					}
				})
				c.start(t)
				for range 15 {
					pass(4 * time.Second)
					noError(t, c.Check(t.Context()))
				}
				for i, gap := range began.between() {
					if gap > 3*time.Second+10*time.Millisecond { // the lease that was not given back, and the pause
						t.Fatalf("the pause %d is %v", i, gap)
					}
				}
			})
		})
	}
}

// MaxHold is the ordinary end of a term: alone the application leads nearly all of the
// time, and its fn need not know why its context ends.
func TestMaxHold_IsTheOrdinaryEndOfATerm(t *testing.T) {
	for name, fn := range map[string]any{
		"nil":       func(ctx context.Context) { <-ctx.Done() },
		"the error": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		"the cause": untilToldTo,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				c := campaigns(t, fxlock.NewMemoryStore(), fn, fxlock.MaxHold(10*time.Second), fxlock.OneTerm())
				token := c.Token()
				pass(10*time.Second - 1)
				leads(t, true, c)
				pass(1)
				leads(t, false, c)
				lost := fmt.Sprintf(`lost: hold "nightly": lease lost: max hold (token %v)`, token)
				c.journal.expect(t, "standing by", "elected", lost, "term ended")
				led := 0
				for range 600 {
					pass(time.Second)
					noError(t, c.Check(t.Context()))
					if c.IsLeader() {
						led++
					}
				}
				if led < 580 {
					t.Errorf("it led for %d seconds of 600", led)
				}
			})
		})
	}
}

// A condition that says no ends the trouble of an earlier attempt.
func TestCheck_ASkippedAttemptIsInGoodOrder(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		asked := 0
		c := campaigns(t, fxlock.NewMemoryStore(), func() { t.Error("fn ran") }, fxlock.If(func() (bool, error) {
			if asked++; asked == 1 {
				return false, errBody
			}
			return false, nil
		}))
		wantIs(t, c.Check(t.Context()), errBody)
		pass(2 * time.Second)
		noError(t, c.Check(t.Context()))
	})
}

// Replicas that wait get their turn when a term has reached its MaxHold.
func TestMaxHold_HandsOver(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := fxlock.NewMemoryStore()
		one := campaigns(t, store, untilToldTo, fxlock.MaxHold(10*time.Second))
		two := campaigns(t, store, untilToldTo, fxlock.MaxHold(10*time.Second))
		for i := range 6 {
			pass(5 * time.Second)
			leads(t, i%2 == 0, one)
			leads(t, i%2 == 1, two)
			pass(5 * time.Second)
		}
	})
}

// A loss before fn has returned cuts its term short, also if fn then returns nil.
func TestOneTerm_GoesOnAfterALoss(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := fxlock.NewMemoryStore()
		c := campaigns(t, store, func(ctx context.Context) { <-ctx.Done() }, fxlock.OneTerm())
		_, err := store.Break(t.Context(), key)
		must(t, err)
		pass(oneBeat)
		leads(t, false, c)
		wantIs(t, c.Check(t.Context()), lockfx.ErrLost)
		pass(2 * time.Second)
		leads(t, true, c)
	})
}

// A scope that can't be built is no term, and its application backs off.
func TestLead_AScopeThatFailsIsNoTerm(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var built moments
		c := campaigns(t, fxlock.NewMemoryStore(), func(*Writer) { t.Error("fn ran") }, fxlock.OneTerm(),
			fxlock.PerRun(func() (*Writer, error) { built.note(); return nil, errBody }))
		pass(time.Minute)
		if n := built.count(); n < 5 || n > 8 {
			t.Errorf("built %d times in a minute", n)
		}
		wantIs(t, c.Check(t.Context()), errBody)
		c.journal.expect(t, "standing by")
	})
}

// A condition that says no is no fault, also if the lock could not be given back.
func TestLead_ASkippedTermIsNoFault(t *testing.T) {
	for name, opts := range map[string][]any{"SkippedError": nil, "SkipOn": {fxlock.SkipOn(lockfx.ErrSkipped)}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				store := newSpyStore(new(journal))
				store.release = func() (bool, error) { return false, errCleanup }
				var asked atomic.Int64
				unwanted := fxlock.If(func() bool { return asked.Add(1)%2 == 1 }) // yes before it waits, and no under the lock
				c := campaigns(t, store, func() { t.Error("fn ran") }, append(opts, unwanted, fxlock.WithTTL(time.Second))...)
				for range 30 {
					pass(2 * time.Second)
					noError(t, c.Check(t.Context()))
				}
			})
		})
	}
}

// The start goes on when the work is done, whatever becomes of the lease.
func TestOnStart_IsDoneOnceFnHasReturnedNil(t *testing.T) {
	for name, fault := range afterFn {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				store, newWriter := fault()
				started(t, fxlock.Module(key, fxlock.WithStore(store), fxlock.PerRun(newWriter), fxlock.OnStart[Migrated](func(*Writer) {})))
			})
		})
	}
}

// What failed after the work is logged.
func TestOnStart_LogsWhatFailedAfterTheWork(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.WarnLevel)
		store, newWriter := afterFn["teardown"]()
		started(t, fxlock.Module(key, fxlock.WithStore(store), fxlock.WithLogger(zap.New(core)), fxlock.PerRun(newWriter),
			fxlock.OnStart[Migrated](func(*Writer) {})))
		if lines := logs.FilterMessage("cleanup of the start failed").All(); len(lines) != 1 || lines[0].ContextMap()["lock"] != key {
			t.Errorf("logged %+v", logs.All())
		}
	})
}

// Work that is not needed fails no start, also if the lock could not be given back.
func TestOnStart_SkippedWorkIsNoFault(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := newSpyStore(new(journal))
		store.release = func() (bool, error) { return false, errCleanup }
		asked := 0
		started(t, fxlock.Module(key, fxlock.WithStore(store),
			fxlock.OnStart[Migrated](func() { t.Error("the work ran") }, fxlock.If(func() bool { asked++; return asked == 1 }))))
	})
}

// A lease that was lost before the work was done fails the start: another replica may
// have worked meanwhile.
func TestOnStart_FailsWhenTheLeaseIsLostDuringTheWork(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := fxlock.NewMemoryStore()
		app := fx.New(fx.NopLogger, fxlock.Module(key, fxlock.WithStore(store), fxlock.OnStart[Migrated](func(ctx context.Context) {
			_, err := store.Break(ctx, key)
			noError(t, err)
			time.Sleep(oneBeat)
		})))
		wantIs(t, app.Start(t.Context()), lockfx.ErrLost)
	})
}
