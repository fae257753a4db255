package fxlock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/fx"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

// straggler is a run whose teardown does not end before the channel closes.
type straggler struct {
	perRun func(j *journal, end <-chan struct{}) []any
	body   func(t *testing.T) any
	says   []string
	early  []string // what happens before the channel closes
	late   []string // and what after
}

var stragglers = map[string]straggler{
	"a hook that does not heed its context": {
		perRun: func(j *journal, end <-chan struct{}) []any {
			return []any{func(lc fx.Lifecycle) *DB {
				lc.Append(fx.StopHook(func() { j.add("what it needs stops") }))
				lc.Append(fx.StopHook(func() { <-end }))
				lc.Append(fx.StopHook(func() { j.add("what needs it stops") }))
				return newDB()
			}}
		},
		body: func(*testing.T) any { return func(*DB) {} },
		says: []string{
			"OnStop hook of fxlock_test.init.func", "(teardown_test.go:", ") has not returned: timed out: the teardown timeout of 1s is over",
		},
		early: []string{"what needs it stops"},
		late:  []string{"what it needs stops", "release"},
	},
	"a resolve that the body left running": {
		perRun: func(j *journal, end <-chan struct{}) []any {
			return []any{
				func(lc fx.Lifecycle) *DB { lc.Append(fx.StopHook(func() { j.add("a value stops") })); return newDB() },
				func(lc fx.Lifecycle) *Cache {
					<-end
					lc.Append(fx.StopHook(func() { j.add("what was built too late stops") }))
					return new(Cache)
				},
			}
		},
		body: func(t *testing.T) any {
			return func(s *fxlock.Scope, _ *DB) {
				go func() { wantText(t, valueErr(fxlock.Get[*Cache](s)), "the run is over") }()
				synctest.Wait()
			}
		},
		says:  []string{"what was resolved by hand is still being built: timed out: 500ms, half of the teardown timeout, are over"},
		early: []string{"a value stops"},
		late:  []string{"what was built too late stops", "release"},
	},
	"a start by hand that the body left running": {
		perRun: func(j *journal, end <-chan struct{}) []any {
			return []any{
				func(lc fx.Lifecycle) *DB { lc.Append(fx.StopHook(func() { j.add("a value stops") })); return newDB() },
				func(lc fx.Lifecycle) *Cache {
					lc.Append(fx.StartStopHook(func() { <-end }, func() { j.add("what started late stops") }))
					return new(Cache)
				},
			}
		},
		body: func(*testing.T) any {
			return func(s *fxlock.Scope, _ *DB) {
				go func() { _, _ = fxlock.Get[*Cache](s) }()
				synctest.Wait()
			}
		},
		says: []string{"is still starting hooks"},
		late: []string{"what started late stops", "a value stops", "release"},
	},
}

// The teardown timeout bounds the run whatever does not return. The error says what that is,
// and the lease is not released under it, but not renewed either.
func TestTeardown_EndsWithItsTimeout(t *testing.T) {
	for name, tt := range stragglers {
		for after, lasts := range map[string]time.Duration{"and returns under its lease": time.Minute / 6, "and outlives its lease": time.Hour} {
			t.Run(name+" "+after, func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					var j journal
					end := make(chan struct{})
					store := newSpyStore(&j)
					lock := newLock(t, store, fxlock.WithTeardownTimeout(time.Second), fxlock.PerRun(tt.perRun(&j, end)...))
					begun := time.Now()
					err := lock.Run(t.Context(), tt.body(t))
					took := time.Since(begun)
					wantIs(t, err, lockfx.ErrTimeout)
					wantText(t, err, append(tt.says, `run "nightly": tear the scope down`, "; the lease of token ",
						" is left to expire, and released when that has ended")...)
					if took > 1100*time.Millisecond {
						t.Errorf("the run took %v", took)
					}
					early := append([]string{"acquire"}, tt.early...)
					j.expect(t, early...)
					wantIs(t, lock.Run(t.Context(), func() { t.Error("two run at once") }), lockfx.ErrNotAcquired)
					time.Sleep(lasts)
					if store.free() != (lasts > ttl) {
						t.Errorf("the key is free: %v", store.free())
					}
					close(end)
					synctest.Wait()
					j.expect(t, append(early, tt.late...)...)
					noError(t, lock.Run(t.Context(), func() {}))
				})
			})
		}
	}
}

// The stop waits for what a run left behind, and says so if that takes too long.
func TestTeardown_ThatDoesNotEndIsNamedByTheStop(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		end := make(chan struct{})
		lock := newLock(t, fxlock.NewMemoryStore(), fxlock.WithTeardownTimeout(time.Second), fxlock.PerRun(func(lc fx.Lifecycle) *DB {
			lc.Append(fx.StopHook(func() { <-end }))
			return newDB()
		}))
		wantIs(t, lock.Run(t.Context(), func(*DB) {}), lockfx.ErrTimeout)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantText(t, lock.Dispose(ctx), `dispose "nightly": what a body left running still runs under token`)
		close(end)
		must(t, lock.Dispose(t.Context()))
	})
}
