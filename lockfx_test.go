package lockfx_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/fx"
	"go.uber.org/goleak"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/filestore"
	"github.com/lockfx/lockfx/fxlock"
)

// These tests are an application from outside: a scheduler that runs a nightly job
// under a lock, on a database that refuses stale fencing tokens. Replicas of it
// share a store.

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAnApplicationStopsInTheOrderOfItsParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		app, s := w.replica(func(ctx context.Context, db *database, fence lockfx.Token) error {
			<-ctx.Done() // the job works until it is told to end
			time.Sleep(10 * time.Second)
			defer w.note("job ends, holding %v", w.holder(t) == fence)
			return db.write(fence, "interrupted")
		})
		must(t, app.Start(t.Context()))
		time.Sleep(time.Hour) // many leases
		must(t, app.Stop(t.Context()))
		w.note("stopped, held by %v", w.holder(t))
		w.expect(t, "scheduler stops", "job ends, holding true", "database closes", "stopped, held by 0")
		if s.err != nil {
			t.Error(s.err)
		}
	})
}

// The fence reaches a body, and what is built for its run, as a dig parameter.
func TestTheFenceIsADigParameter(t *testing.T) {
	type entry struct {
		db    *database
		fence lockfx.Token
	}
	type params struct {
		fx.In
		Fence lockfx.Token `name:"lock:fence"`
		Entry *entry
	}
	w := newWorld()
	body := func(ctx context.Context, p params) error {
		if p.Fence != p.Entry.fence || p.Fence != lockfx.TokenFrom(ctx) {
			t.Errorf("fences %v, %v and %v", p.Fence, p.Entry.fence, lockfx.TokenFrom(ctx))
		}
		return p.Entry.db.write(p.Fence, "done")
	}
	if app, _ := w.replica(body); app.Err() == nil {
		t.Error("fx.New says nothing of an entry that nobody builds")
	}
	newEntry := func(db *database, fence lockfx.Token) *entry { return &entry{db, fence} }
	var s *scheduler
	app := fx.New(fx.NopLogger, fx.Provide(w.newDatabase, w.newScheduler), fx.Populate(&s),
		fxlock.Module("nightly", fxlock.WithStore(w.store), fxlock.PerRun(newEntry), fxlock.Body[nightly](body)))
	must(t, app.Start(t.Context()))
	<-s.done
	must(t, app.Stop(t.Context()))
	if s.err != nil || !slices.Equal(w.ledger.entries, []string{"done"}) {
		t.Errorf("error %v, ledger %q", s.err, w.ledger.entries)
	}
}

// A replica whose lease is lost in mid-run is told so; another takes over; what the
// first writes late is refused.
func TestALossInMidRunPassesTheJobOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		var cause error
		first, s1 := w.replica(func(ctx context.Context, db *database, h lockfx.Holder, fence lockfx.Token) error {
			err := db.write(fence, "first")
			<-ctx.Done()
			cause = context.Cause(ctx)
			w.note("first: held %v, token %v", h.Held(), h.Token())
			time.Sleep(time.Hour) // it does not listen
			return errors.Join(err, db.write(fence, "first, late"))
		})
		second, s2 := w.replica(func(db *database, fence lockfx.Token) error { return db.write(fence, "second") })
		must(t, first.Start(t.Context()))
		synctest.Wait()
		must(t, second.Start(t.Context()))
		<-s2.done
		if !errors.Is(s2.err, lockfx.ErrNotAcquired) {
			t.Errorf("the second ran beside the first: %v", s2.err)
		}

		w.store.cut.Store(true)
		time.Sleep(time.Minute) // a heartbeat is refused, and the lease expires
		w.store.cut.Store(false)
		if err := s2.job(t.Context()); err != nil {
			t.Errorf("the second can't take over: %v", err)
		}
		<-s1.done
		var lost *lockfx.LostError
		if !errors.As(cause, &lost) || lost.Reason != lockfx.ReasonHeartbeatFailed {
			t.Errorf("the cause in the body is %v", cause)
		}
		if !errors.Is(s1.err, lockfx.ErrStaleToken) || !errors.Is(s1.err, lockfx.ErrLost) {
			t.Errorf("the first ended with %v", s1.err)
		}
		if want := []string{"first", "second"}; !slices.Equal(w.ledger.entries, want) {
			t.Errorf("the ledger has %q, want %q", w.ledger.entries, want)
		}
		must(t, errors.Join(first.Stop(t.Context()), second.Stop(t.Context())))
		w.expect(t, "first: held false, token 0", "scheduler stops", "database closes", "scheduler stops", "database closes")
	})
}

// A start that fails leaves nothing behind that another replica would wait for.
func TestAFailedStartLeavesNothingHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		job := func(ctx context.Context, _ *database) error { <-ctx.Done(); return context.Cause(ctx) }
		boom := errors.New("boom")
		app, s := w.replica(job, fx.Invoke(func(lc fx.Lifecycle, _ *scheduler) {
			lc.Append(fx.StartHook(func() error { synctest.Wait(); return boom }))
		}))
		if err := app.Start(t.Context()); !errors.Is(err, boom) {
			t.Errorf("start: %v", err)
		}
		if !errors.Is(s.err, context.Canceled) || w.holder(t) != 0 {
			t.Errorf("the job ended with %v, the key is held by %v", s.err, w.holder(t))
		}
		w.expect(t, "scheduler stops", "database closes")

		unbuilt, _ := w.replica(job, fx.Invoke(func() error { return boom }))
		if err := unbuilt.Err(); !errors.Is(err, boom) || w.holder(t) != 0 {
			t.Errorf("fx.New: %v, the key is held by %v", err, w.holder(t))
		}
	})
}

// When fx runs out of time before it comes to the lock, the run gives the lease
// back by itself.
func TestASkippedStopHookDoesNotKeepTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		end := make(chan struct{})
		app, s := w.replica(func() error { <-end; return nil }, fx.Invoke(func(lc fx.Lifecycle, _ *scheduler) {
			lc.Append(fx.StopHook(func(ctx context.Context) { <-ctx.Done() }))
		}))
		must(t, app.Start(t.Context()))
		synctest.Wait()
		stop, cancel := context.WithTimeout(t.Context(), 15*time.Second)
		defer cancel()
		if err := app.Stop(stop); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("stop: %v", err)
		}
		time.Sleep(time.Hour)
		if !w.holder(t).Valid() {
			t.Error("the lease ended under the running job")
		}
		close(end)
		<-s.done
		if s.err != nil || w.holder(t) != 0 {
			t.Errorf("the job ended with %v, the key is held by %v", s.err, w.holder(t))
		}
		w.expect(t)
	})
}

// Two locks of one application know nothing of each other, though they share a
// store and a database.
func TestTwoLocksOfOneApplication(t *testing.T) {
	type migrate func(context.Context) error
	w := newWorld()
	var inner migrate
	app, s := w.replica(
		func(ctx context.Context, db *database, fence lockfx.Token, m migrate) error {
			return errors.Join(m(ctx), db.write(fence, "nightly"))
		},
		fxlock.Module("migrations", fxlock.Named(), fxlock.StoreFromGraph(),
			fxlock.Body[migrate](func(ctx context.Context, h lockfx.Holder, locks struct {
				fx.In
				Nightly    *fxlock.Lock
				Migrations *fxlock.Lock `name:"migrations"`
			},
			) error {
				if h.Key() != "migrations" || !locks.Nightly.Held() || locks.Migrations.Token() != h.Token() || lockfx.TokenFrom(ctx) != h.Token() {
					t.Errorf("the inner run is of %q, token %v in %v", h.Key(), h.Token(), lockfx.TokenFrom(ctx))
				}
				outer, own, none := lockfx.TokenFor(ctx, "nightly"), lockfx.TokenFor(ctx, "migrations"), lockfx.TokenFor(ctx, "other")
				if outer != locks.Nightly.Token() || own != h.Token() || none != 0 {
					t.Errorf("by key the tokens are %v of nightly, %v of migrations, %v of a lock that has no run", outer, own, none)
				}
				return nil
			})),
		fx.Populate(&inner))
	must(t, app.Start(t.Context()))
	<-s.done
	must(t, app.Stop(t.Context()))
	if s.err != nil || !errors.Is(inner(t.Context()), lockfx.ErrDisposed) {
		t.Errorf("the job ended with %v", s.err)
	}
}

// A store that the application provides is the application's to close. The end of the
// tests finds what is left of it.
func TestAStoreOfTheApplicationEndsWithIt(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "locks")
	var locks struct {
		fx.In
		First  *fxlock.Lock
		Second *fxlock.Lock `name:"second"`
	}
	app := fx.New(fx.NopLogger,
		fx.Provide(func(lc fx.Lifecycle) (lockfx.Store, error) {
			store, err := filestore.New(dir)
			if err == nil {
				lc.Append(fx.StopHook(store.Close))
			}
			return store, err
		}),
		fxlock.Module("nightly", fxlock.StoreFromGraph()),
		fxlock.Module("second", fxlock.StoreFromGraph(), fxlock.Named(), fxlock.WithKey("nightly")),
		fx.Populate(&locks))
	must(t, app.Start(t.Context()))
	must(t, locks.First.Do(t.Context(), func(context.Context, lockfx.Holder) error { // the second one watches the key
		err := locks.Second.Do(t.Context(), func(context.Context, lockfx.Holder) error { return nil }, fxlock.Wait(200*time.Millisecond))
		if !errors.Is(err, lockfx.ErrTimeout) {
			t.Errorf("two locks of one key: %v", err)
		}
		return nil
	}))
	must(t, app.Stop(t.Context()))
}

// A test of the scheduler needs no lock, no store and no database.
func TestATestReplacesTheJob(t *testing.T) {
	w := newWorld()
	ran := make(chan struct{})
	app, s := w.replica(
		func(*database) error { t.Error("the real job ran"); return nil },
		fx.Replace(nightly(func(context.Context) error { close(ran); return nil })),
		fx.Decorate(func(lockfx.Store) lockfx.Store { t.Error("the store was built"); return nil }))
	must(t, app.Start(t.Context()))
	<-ran
	must(t, app.Stop(t.Context()))
	w.expect(t, "scheduler stops") // there was no database to close
	if s.err != nil {
		t.Error(s.err)
	}
}

// An application that is started again goes on with greater tokens.
func TestTokensRiseFromStartToStart(t *testing.T) {
	w := newWorld()
	var fences []lockfx.Token
	var job nightly
	app, _ := w.replica(func(fence lockfx.Token) error { fences = append(fences, fence); return nil },
		fx.Replace(new(scheduler)), fx.Populate(&job))
	for range 3 {
		must(t, app.Start(t.Context()))
		must(t, job(t.Context()))
		must(t, app.Stop(t.Context()))
	}
	if len(fences) != 3 || fences[0] >= fences[1] || fences[1] >= fences[2] {
		t.Errorf("fences %v do not rise", fences)
	}
}
