package fxlock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/fx"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

// A condition is asked before waiting for the lock, and again under it: meanwhile
// another may have done the work.
func ExampleIf() {
	type Rebuild func(context.Context) error
	type Index struct{ stale bool }

	var rebuild Rebuild
	inApp(func(ctx context.Context) {
		fmt.Println(rebuild(ctx))
		fmt.Println(rebuild(ctx))
	},
		fx.Supply(&Index{stale: true}),
		fxlock.Module("index", fxlock.WithStore(fxlock.NewMemoryStore()),
			fxlock.Body[Rebuild](func(index *Index) error { index.stale = false; return nil },
				fxlock.If(func(index *Index) bool { return index.stale }))),
		fx.Populate(&rebuild))
	// Output:
	// <nil>
	// run "index": skipped: the condition said no before waiting for the lock
}

// To a scheduler, a job that another replica runs is no failure, and neither is one that
// is not wanted any more. An event says that it was skipped.
func ExampleSkipOn() {
	type Nightly func(context.Context) error
	store := fxlock.NewMemoryStore()
	var nightly Nightly
	inApp(func(ctx context.Context) {
		_, _ = store.Acquire(lockfx.WithLabel(ctx, "web-2"), "nightly", time.Minute) // another replica runs it
		fmt.Println(nightly(ctx))
	},
		fxlock.Module("nightly", fxlock.WithStore(store),
			fxlock.Body[Nightly](func() error { panic("it does not run") }, fxlock.SkipOn(lockfx.ErrNotAcquired, lockfx.ErrSkipped)),
			fxlock.Observer(func(e lockfx.Event) { fmt.Println(e.Kind) })),
		fx.Populate(&nightly))
	// Output:
	// refused
	// skipped
	// <nil>
	// disposed
}

// A short job that each of several hosts starts when its own clock says so: whoever
// is first keeps the key until the clocks of all have passed the hour.
func ExampleMinHold() {
	store := fxlock.NewMemoryStore()
	hosts := make([]*fxlock.Lock, 2)
	for i := range hosts {
		lock, err := fxlock.New(fxlock.WithKey("hourly"), fxlock.WithTTL(30*time.Second), fxlock.WithStore(store),
			fxlock.MinHold(10*time.Second), fxlock.MaxHold(5*time.Minute))
		if err != nil {
			panic(err)
		}
		hosts[i] = lock
	}
	for _, host := range hosts { // one after the other
		err := host.Run(context.Background(), func() { fmt.Println("send the report") })
		fmt.Println(errors.Is(err, lockfx.ErrNotAcquired))
	}
	// Output:
	// send the report
	// false
	// true
}
