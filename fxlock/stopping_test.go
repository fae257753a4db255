package fxlock_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/fx"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

// many returns n modules that use store, each with what option makes for it.
func many(n int, store lockfx.Store, option func(i int) fxlock.Option) fx.Option {
	modules := make([]fx.Option, n)
	for i := range modules {
		modules[i] = fxlock.Module(fmt.Sprint("lock-", i), fxlock.Named(), fxlock.WithStore(store), option(i))
	}
	return fx.Options(modules...)
}

// The first hook tells all, so that the stop takes as long as the slowest, and not as long
// as all together.
func TestStop_NotifiesEveryLockAtOnce(t *testing.T) {
	for name, hangs := range map[string]bool{"a store that answers": false, "a store that hangs at the release": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				const n = 20
				var ended atomic.Int64
				var store lockfx.Store = fxlock.NewMemoryStore()
				if hangs {
					store = unanswering("release")
				}
				app := started(t, many(n, store, func(int) fxlock.Option {
					return fxlock.Lead(func(ctx context.Context) error {
						<-ctx.Done()
						wantIs(t, context.Cause(ctx), lockfx.ErrDisposed)
						time.Sleep(time.Second) // to wind down
						ended.Add(1)
						return context.Cause(ctx)
					})
				}))
				synctest.Wait()
				began := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
				defer cancel()
				_ = app.Stop(ctx)
				want := time.Second
				if hangs {
					want += 5 * time.Second // the release timeout
				}
				if took := time.Since(began); took != want || ended.Load() != n {
					t.Errorf("the stop took %v, want %v; %d of %d leaders have ended", took, want, ended.Load(), n)
				}
			})
		})
	}
}

// Whoever waits for a lock leaves at the first hook, too: of a lock whose own comes later.
func TestStop_EndsWaitsAndRefusesRuns(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := fxlock.NewMemoryStore()
		var first *fxlock.Lock
		var late Nightly
		app := started(t, fxlock.Module("first", fxlock.WithStore(store)), fx.Populate(&first),
			fxlock.Module("last", fxlock.Named(), fxlock.WithStore(store), fxlock.Body[Nightly](func(ctx context.Context) error {
				<-ctx.Done()
				time.Sleep(time.Second)
				return context.Cause(ctx)
			})), fx.Populate(&late))
		_, _ = store.Acquire(t.Context(), "first", time.Hour)
		waits := inBackground(func() error { return first.Do(t.Context(), workNothing, fxlock.WaitForever()) })
		body := inBackground(func() error { return late(t.Context()) })
		waits.waits(t)
		stop := inBackground(func() error { return app.Stop(context.Background()) })
		wantIs(t, waits.endsNow(t), lockfx.ErrDisposed)
		wantIs(t, first.Do(t.Context(), workNothing), lockfx.ErrDisposed)
		wantIs(t, (<-body.ended).err, lockfx.ErrDisposed)
		noError(t, (<-stop.ended).err)
	})
}

// What outlives the stop is named lock by lock, and renewed no more: also where fx skips the
// hooks of a lock, since another hook has used up the time.
func TestStop_NamesWhatOutlivesIt(t *testing.T) {
	for name, blocks := range map[string]bool{"all hooks run": false, "hooks are skipped": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				var renewals atomic.Int64
				store := newInterceptedStore(func(_ context.Context, request string) error {
					if request == "renew" {
						renewals.Add(1)
					}
					return nil
				})
				end := make(chan struct{})
				type blocker struct{}
				// It stops between the hooks of lock-1 and those of lock-0.
				between := fx.Provide(func(lc fx.Lifecycle) *blocker {
					lc.Append(fx.StopHook(func(ctx context.Context) {
						if blocks {
							<-ctx.Done()
						}
					}))
					return new(blocker)
				})
				app := started(t, between,
					many(1, store, func(int) fxlock.Option { return fxlock.Lead(func() { <-end }) }),
					fx.Invoke(func(*blocker) {}),
					fxlock.Module("lock-1", fxlock.Named(), fxlock.WithStore(store), fxlock.Lead(func() { <-end })))
				synctest.Wait()
				ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
				defer cancel()
				err := app.Stop(ctx)
				wantIs(t, err, context.DeadlineExceeded)
				if !blocks {
					for i := range 2 {
						wantText(t, err, fmt.Sprintf(`dispose "lock-%d": the body still runs under token`, i), "its lease is left to expire")
					}
				}
				synctest.Wait()
				before := renewals.Load()
				time.Sleep(time.Hour)
				if after := renewals.Load(); after != before {
					t.Errorf("renewed %d times after the stop", after-before)
				}
				close(end)
				synctest.Wait()
			})
		})
	}
}

// With Drain nothing that a body has captured is closed under it, in whatever order it was
// built.
func TestDrain_EndsRunsBeforeAnythingElseStops(t *testing.T) {
	type database struct{ closed atomic.Bool }
	newDatabase := func(lc fx.Lifecycle) *database {
		db := new(database)
		lc.Append(fx.StopHook(func() { db.closed.Store(true) }))
		return db
	}
	type reports struct {
		lock *fxlock.Lock
		db   *database
	}
	for name, newReports := range map[string]any{
		"lock first":     func(lock *fxlock.Lock, db *database) *reports { return &reports{lock, db} },
		"database first": func(db *database, lock *fxlock.Lock) *reports { return &reports{lock, db} },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				var r *reports
				app := started(t, fx.Provide(newDatabase, newReports), fxlock.Module(key, memory()), fx.Populate(&r), fxlock.Drain())
				run := inBackground(func() error {
					return r.lock.Do(t.Context(), func(ctx context.Context, _ lockfx.Holder) error {
						<-ctx.Done()
						time.Sleep(time.Second)
						if r.db.closed.Load() {
							t.Error("the database was closed under the body")
						}
						return nil
					})
				})
				run.waits(t)
				must(t, app.Stop(t.Context()))
				noError(t, run.endsNow(t))
				if !r.db.closed.Load() {
					t.Error("the database was not closed")
				}
				must(t, app.Start(t.Context())) // and again
				must(t, r.lock.Do(t.Context(), workNothing))
				must(t, app.Stop(t.Context()))
			})
		})
	}
}

// closableStore notes when it is closed.
type closableStore struct {
	*fxlock.MemoryStore
	closed atomic.Int64
}

func (s *closableStore) Close(context.Context) error { s.closed.Add(1); return nil }

// A run of an earlier start still needs the lock's own store for its release.
func TestStop_LeavesTheStoreToARunOfAnEarlierStart(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := &closableStore{MemoryStore: fxlock.NewMemoryStore()}
		var lock *fxlock.Lock
		app := started(t, fxlock.Module(key, fxlock.StoreFrom(func() lockfx.Store { return store })), fx.Populate(&lock))
		end := make(chan struct{})
		run := inBackground(func() error {
			return lock.Do(t.Context(), func(context.Context, lockfx.Holder) error {
				<-end
				if store.closed.Load() != 0 {
					t.Error("the store was closed under the run")
				}
				return nil
			})
		})
		run.waits(t)
		stop := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			return app.Stop(ctx)
		}
		wantIs(t, stop(), context.DeadlineExceeded)
		must(t, app.Start(t.Context()))
		must(t, stop())
		close(end)
		<-run.ended
		must(t, app.Start(t.Context()))
		must(t, stop())
		if n := store.closed.Load(); n != 1 {
			t.Errorf("the store was closed %d times", n)
		}
	})
}

// An application with many modules gets one stopping for each, and a failed fx.New tells
// nobody anything.
func TestStop_OfAnApplicationThatWasNotBuilt(t *testing.T) {
	err := newErr(many(2, fxlock.NewMemoryStore(), func(int) fxlock.Option { return fxlock.Lead(func() {}) }), fxlock.Drain(),
		fx.Invoke(func(*Nightly) {}))
	if err == nil || !strings.Contains(err.Error(), "missing type") {
		t.Errorf("fx.New: %v", err)
	}
}
