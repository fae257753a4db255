package schedulers_test

import (
	"context"
	"fmt"
	"time"

	"github.com/go-co-op/gocron/v2"
	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/examples/schedulers"
	"github.com/lockfx/lockfx/fxlock"
)

// A nightly job of robfig/cron that one replica runs, under a fence.
func ExampleNewCron() {
	fmt.Println(fxlock.Validate(
		fx.Provide(zap.NewNop, func() lockfx.Store { return fxlock.NewMemoryStore() }),
		fxlock.Module("nightly", fxlock.StoreFromGraph(), fxlock.MinHold(time.Minute),
			fxlock.Body[schedulers.Job](func(context.Context, lockfx.Token) error {
				return nil // write the report under the token
			})),
		fx.Invoke(func(lc fx.Lifecycle, job schedulers.Job, logger *zap.Logger) error {
			_, err := schedulers.NewCron(lc, "0 3 * * *", job, logger)
			return err
		})))
	// Output: <nil>
}

// A job that gocron knows by its name, guarded without changing it.
func ExampleLocker() {
	app := fx.New(fx.NopLogger, fx.Invoke(func(lc fx.Lifecycle) error {
		locker := schedulers.NewLocker(lc, fxlock.WithStore(fxlock.NewMemoryStore()), fxlock.WithTTL(30*time.Second))
		s, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
		if err != nil {
			return err
		}
		lc.Append(fx.StartStopHook(s.Start, s.Shutdown))
		done := make(chan struct{})
		_, err = s.NewJob(gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()),
			gocron.NewTask(func() { fmt.Println("one replica does this"); close(done) }), gocron.WithName("nightly"))
		lc.Append(fx.StartHook(func() { <-done }))
		return err
	}))
	ctx := context.Background()
	fmt.Println(app.Start(ctx), app.Stop(ctx))
	// Output:
	// one replica does this
	// <nil> <nil>
}

// All jobs of a scheduler run on the leader.
func ExampleElector() {
	var l *fxlock.Leadership
	app := fx.New(fx.NopLogger, fx.Populate(&l),
		fxlock.Module("scheduler", fxlock.WithStore(fxlock.NewMemoryStore()), fxlock.Lead(schedulers.Reign)))
	fmt.Println(app.Err())
	s, err := gocron.NewScheduler(gocron.WithDistributedElector(schedulers.Elector{Leadership: l}))
	if err != nil {
		panic(err)
	}
	fmt.Println(s.Shutdown())
	// Output:
	// <nil>
	// <nil>
}
