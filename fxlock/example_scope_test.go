package fxlock_test

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/fx"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

// What PerRun builds lives as long as the run. Its hooks are those of any fx
// constructor.
func ExamplePerRun() {
	type Writer struct{ fence lockfx.Token }
	newWriter := func(lc fx.Lifecycle, fence lockfx.Token) *Writer {
		lc.Append(fx.StartStopHook(
			func() { fmt.Println("open") },
			func() { fmt.Println("flush, while the fence is valid") }))
		return &Writer{fence}
	}
	lock, err := fxlock.New(fxlock.WithKey("nightly"), fxlock.WithTTL(30*time.Second),
		fxlock.WithStore(fxlock.NewMemoryStore()), fxlock.PerRun(newWriter))
	if err != nil {
		panic(err)
	}
	fmt.Println(lock.Run(context.Background(), func(w *Writer) {
		fmt.Println("write", w.fence.Valid())
	}))
	// Output:
	// open
	// write true
	// flush, while the fence is valid
	// <nil>
}

// A Scope resolves what a body needs only now and then.
func ExampleScope() {
	type Job struct{ name string }
	type Jobs struct {
		fx.In
		All []Job `group:"jobs"`
	}
	var lock *fxlock.Lock
	inApp(func(ctx context.Context) {
		err := lock.Run(ctx, func(scope *fxlock.Scope) error {
			fence, err := fxlock.Get[lockfx.Token](scope, "lock:fence")
			if err != nil {
				return err
			}
			return scope.Invoke(func(jobs Jobs) {
				fmt.Println(jobs.All[0].name, fence.Valid())
			})
		})
		fmt.Println(err)
	},
		fx.Provide(fx.Annotated{Group: "jobs", Target: func() Job { return Job{"vacuum"} }}),
		fxlock.Module("nightly",
			fxlock.WithStore(fxlock.NewMemoryStore()),
			fxlock.ShareGroup[Job]("jobs")),
		fx.Populate(&lock))
	// Output:
	// vacuum true
	// <nil>
}

// The names under which a run binds its token and holder can be chosen.
func ExampleWithTokenName() {
	type in struct {
		fx.In
		Fence  lockfx.Token  `name:"migration:fence"`
		Holder lockfx.Holder `name:"migration:holder"`
	}
	lock, err := fxlock.New(fxlock.WithKey("migration"), fxlock.WithTTL(30*time.Second), fxlock.WithStore(fxlock.NewMemoryStore()),
		fxlock.WithTokenName("migration:fence"), fxlock.WithHolderName("migration:holder"))
	if err != nil {
		panic(err)
	}
	fmt.Println(lock.Run(context.Background(), func(p in) {
		fmt.Println(p.Fence == p.Holder.Token())
	}))
	// Output:
	// true
	// <nil>
}
