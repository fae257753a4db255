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

// What was skipped can be no error, and can be told when the lock is free again.
func ExampleOnSkipped() {
	asked := 0
	lock, err := fxlock.New(fxlock.WithKey("index"), fxlock.WithTTL(30*time.Second), fxlock.WithStore(fxlock.NewMemoryStore()),
		fxlock.If(func() (bool, error) { asked++; return asked == 1, nil }),
		fxlock.OnSkipped(func(e *lockfx.SkippedError) { fmt.Println("skipped under the lock:", e.Acquired) }),
		fxlock.SkipIsOK())
	if err != nil {
		panic(err)
	}
	fmt.Println(lock.Run(context.Background(), func() { fmt.Println("never") }))
	// Output:
	// skipped under the lock: true
	// <nil>
}

// To a scheduler, a job that another replica runs is no fault. An outage is.
func ExampleSkipIfHeld() {
	type Nightly func(context.Context) error
	var job Nightly = func(context.Context) error {
		return &lockfx.NotAcquiredError{Key: "nightly", HeldBy: "web-2"}
	}
	var outage Nightly = func(context.Context) error { return lockfx.ErrStore }
	ctx := context.Background()
	fmt.Println(fxlock.SkipIfHeld(job)(ctx))
	fmt.Println(fxlock.SkipIfHeld(outage)(ctx))
	// Output:
	// <nil>
	// store failed
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
