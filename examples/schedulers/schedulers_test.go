package schedulers_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/examples/schedulers"
	"github.com/lockfx/lockfx/fxlock"
)

// shortest is longer than the schedulers of the replicas differ.
var shortest = fxlock.MinHold(500 * time.Millisecond)

func asTask(lc fx.Lifecycle, job schedulers.Job) error {
	return scheduler(lc, gocron.WithLocation(time.UTC), job)
}

// Three replicas run the job once each second. Those of gocron differ by up to 400 ms;
// those of cron begin at the same instant, since it rounds to seconds.
func TestOneReplicaRunsTheJob(t *testing.T) {
	for name, with := range map[string]func(store *fxlock.MemoryStore, w *work) fx.Option{
		"cron": func(store *fxlock.MemoryStore, w *work) fx.Option {
			return fx.Options(jobOver(store, w, shortest), fx.Invoke(func(lc fx.Lifecycle, job schedulers.Job, logger *zap.Logger) error {
				_, err := schedulers.NewCron(lc, "@every 1s", job, logger)
				return err
			}))
		},
		"gocron, a body": func(store *fxlock.MemoryStore, w *work) fx.Option {
			return fx.Options(jobOver(store, w, shortest), fx.Invoke(asTask))
		},
		"gocron, a locker": func(store *fxlock.MemoryStore, w *work) fx.Option {
			return fx.Invoke(func(lc fx.Lifecycle) error {
				locker := schedulers.NewLocker(lc, fxlock.WithStore(store), fxlock.WithTTL(30*time.Second), shortest)
				return scheduler(lc, gocron.WithDistributedLocker(locker), w.do)
			})
		},
		"gocron, an elector": func(store *fxlock.MemoryStore, w *work) fx.Option {
			return fx.Options(
				fxlock.Module("scheduler", fxlock.WithStore(store), fxlock.Lead(schedulers.Reign)),
				fx.Invoke(func(lc fx.Lifecycle, l *fxlock.Leadership) error {
					return scheduler(lc, gocron.WithDistributedElector(schedulers.Elector{Leadership: l}), w.do)
				}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, w := fxlock.NewMemoryStore(), new(work)
				tick(t, func() fx.Option { return with(store, w) })
				w.want(t, ticks)
				if lease, err := store.Inspect(t.Context(), "scheduler"); lease.Token != 0 || err != nil {
					t.Errorf("the leader left %+v, %v", lease, err)
				}
			})
		})
	}
}

// tick starts the replicas one after the other, and stops them after some ticks.
func tick(t *testing.T, with func() fx.Option) {
	t.Helper()
	var stops []func()
	for range replicas {
		stops = append(stops, replica(t, with()))
		time.Sleep(200 * time.Millisecond)
	}
	time.Sleep(ticks*time.Second - 100*time.Millisecond)
	for _, stop := range stops {
		stop()
	}
}

// Without MinHold each replica finds the lock free when its own clock says so.
func TestWithoutMinHoldTheReplicasTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, w := fxlock.NewMemoryStore(), new(work)
		tick(t, func() fx.Option { return fx.Options(jobOver(store, w), fx.Invoke(asTask)) })
		w.want(t, replicas*ticks)
	})
}

// A crash of the leader leaves the jobs to its successor.
func TestAnElectorFollowsTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := fxlock.NewMemoryStore()
		var l *fxlock.Leadership
		stop := replica(t, fxlock.Module("scheduler", fxlock.WithStore(store), fxlock.Lead(schedulers.Reign)), fx.Populate(&l))
		synctest.Wait()
		e := schedulers.Elector{Leadership: l}
		if err := e.IsLeader(t.Context()); err != nil {
			t.Error(err)
		}
		if ok, err := store.Break(t.Context(), "scheduler"); !ok || err != nil {
			t.Error(ok, err)
		}
		time.Sleep(10*time.Second + time.Millisecond)
		if e.IsLeader(t.Context()) == nil {
			t.Error("it leads without a lease")
		}
		stop()
	})
}

func TestALockerTellsContentionFromOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &failing{MemoryStore: fxlock.NewMemoryStore()}
		lc := fxtest.NewLifecycle(t)
		newLocker := func() *schedulers.Locker {
			return schedulers.NewLocker(lc, fxlock.WithStore(store), fxlock.WithTTL(30*time.Second))
		}
		lc.RequireStart()
		one, other := newLocker(), newLocker()
		lock, err := one.Lock(t.Context(), "nightly")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := other.Lock(t.Context(), "nightly"); !errors.Is(err, lockfx.ErrNotAcquired) {
			t.Errorf("contention is %v", err)
		}
		if _, err := one.Lock(t.Context(), "nightly"); !errors.Is(err, lockfx.ErrNotIdle) {
			t.Errorf("a job that overlaps with itself is %v", err)
		}
		if err := lock.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		lock, err = other.Lock(t.Context(), "nightly")
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := store.Break(t.Context(), "nightly"); !ok || err != nil {
			t.Error(ok, err)
		}
		if err := lock.Unlock(t.Context()); !errors.Is(err, lockfx.ErrLost) {
			t.Errorf("a lease that was lost is given back with %v", err)
		}
		store.err = errors.New("no way through")
		if _, err := one.Lock(t.Context(), "nightly"); !errors.Is(err, lockfx.ErrStore) {
			t.Errorf("an outage is %v", err)
		}
		if _, err := one.Lock(t.Context(), ""); !errors.Is(err, lockfx.ErrConfig) {
			t.Errorf("a job without a name is %v", err)
		}
		lc.RequireStop()
	})
}

// failing is a memory store that grants nothing while err is set.
type failing struct {
	*fxlock.MemoryStore
	err error
}

func (s *failing) Acquire(ctx context.Context, key string, ttl time.Duration) (lockfx.Grant, error) {
	if s.err != nil {
		return lockfx.Grant{}, s.err
	}
	return s.MemoryStore.Acquire(ctx, key, ttl)
}

// An application can be started again after a stop, and its jobs with it.
func TestCronRunsAfterEachStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.ErrorLevel)
		var runs atomic.Int64
		lc := fxtest.NewLifecycle(t)
		_, err := schedulers.NewCron(lc, "@every 1s", func(ctx context.Context) error {
			runs.Add(1)
			return ctx.Err()
		}, zap.New(core))
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			lc.RequireStart()
			time.Sleep(2*time.Second + time.Millisecond)
			lc.RequireStop()
		}
		if runs.Load() != 4 || logs.Len() != 0 {
			t.Errorf("%d runs, logged %v", runs.Load(), logs.All())
		}
	})
}

// The error of a job is logged, and the stop waits for a job that runs.
func TestCronLogsAndWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.ErrorLevel)
		fault := errors.New("fault")
		var runs atomic.Int64
		var ended atomic.Bool
		lc := fxtest.NewLifecycle(t)
		_, err := schedulers.NewCron(lc, "@every 1s", func(ctx context.Context) error {
			if runs.Add(1) == 1 {
				return fault
			}
			<-ctx.Done()
			time.Sleep(time.Second)
			ended.Store(true)
			return nil
		}, zap.New(core))
		if err != nil {
			t.Fatal(err)
		}
		lc.RequireStart()
		time.Sleep(2*time.Second + time.Millisecond)
		lc.RequireStop()
		if !ended.Load() || logs.Len() != 1 || logs.All()[0].ContextMap()["error"] != "fault" {
			t.Errorf("ended %v, logged %v", ended.Load(), logs.All())
		}
	})
	if _, err := schedulers.NewCron(fxtest.NewLifecycle(t), "now and then", new(work).do, zap.NewNop()); err == nil {
		t.Error("a spec that says nothing was accepted")
	}
}
