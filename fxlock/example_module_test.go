package fxlock_test

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

// Two locks in one application are told apart by their names.
func ExampleModule() {
	var locks struct {
		fx.In
		Nightly    *fxlock.Lock // the one that is not Named
		Migrations *fxlock.Lock `name:"migrations"`
	}
	inApp(func(context.Context) {
		fmt.Println(locks.Nightly.Key(), locks.Migrations.Key())
	},
		fx.Provide(func() lockfx.Store { return fxlock.NewMemoryStore() }),
		fxlock.Module("nightly", fxlock.StoreFromGraph()),
		fxlock.Module("migrations", fxlock.StoreFromGraph(), fxlock.Named()),
		fx.Populate(&locks))
	// Output: nightly migrations
}

// A feature keeps its lock and its store to itself.
func ExamplePrivate() {
	type Client struct{ addr string }
	type Cleanup func(context.Context) error
	type Feature struct{ Cleanup }

	var feature *Feature
	inApp(func(ctx context.Context) {
		fmt.Println(feature.Cleanup(ctx))
	},
		fx.Module("feature",
			fx.Supply(fx.Private, &Client{"10.0.0.7"}),
			fxlock.Module("cleanup", fxlock.Private(),
				fxlock.StoreFrom(func(c *Client) lockfx.Store {
					fmt.Println("store at", c.addr)
					return fxlock.NewMemoryStore()
				}),
				fxlock.Body[Cleanup](func() error { fmt.Println("clean"); return nil })),
			fx.Provide(func(c Cleanup) *Feature { return &Feature{c} })),
		fx.Populate(&feature))
	// Output:
	// store at 10.0.0.7
	// clean
	// <nil>
}

// A test puts a function in place of a body: no lock, no store and nothing that
// the body needs is built.
func Example_replace() {
	type Nightly func(context.Context) error
	type Table struct{}

	var nightly Nightly
	inApp(func(ctx context.Context) {
		fmt.Println(nightly(ctx))
	},
		fx.Provide(func() *Table { panic("not in a test") }),
		fxlock.Module("nightly", fxlock.Body[Nightly](func(*Table) error { return nil })),
		fx.Replace(Nightly(func(context.Context) error { fmt.Println("replaced"); return nil })),
		fx.Populate(&nightly))
	// Output:
	// replaced
	// <nil>
}

// A test of an application finds what a body asks for in vain.
func ExampleValidate() {
	type Table struct{}
	type Nightly func(context.Context) error
	module := fxlock.Module("nightly",
		fxlock.WithStore(fxlock.NewMemoryStore()),
		fxlock.Body[Nightly](func(*Table) error { return nil }))
	fmt.Println(fxlock.Validate(module) != nil)
	fmt.Println(fxlock.Validate(module, fx.Supply(new(Table))))
	// Output:
	// true
	// <nil>
}

// A lock that was made by hand ends with the application.
func ExampleBind() {
	lock, err := fxlock.New(fxlock.WithKey("nightly"), fxlock.WithTTL(30*time.Second), fxlock.WithStore(fxlock.NewMemoryStore()))
	if err != nil {
		panic(err)
	}
	inApp(func(ctx context.Context) {
		fmt.Println(lock.Acquire(ctx)) // left to the stop
	}, fxlock.Bind("nightly", lock))
	fmt.Println(lock.State())
	// Output:
	// true <nil>
	// released
}

// An observer sees all that the log says.
func ExampleObserver() {
	opts := []fxlock.Option{
		fxlock.WithKey("nightly"), fxlock.WithTTL(30 * time.Second), fxlock.WithStore(fxlock.NewMemoryStore()),
		fxlock.WithLogger(zap.NewNop()),
		fxlock.Observer(func(e lockfx.Event) { fmt.Println(e.Kind, e.Reason) }),
		fxlock.WithOnLost(func(r lockfx.Reason) { fmt.Println("lost:", r) }),
	}
	lock, err := fxlock.New(opts...)
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	fmt.Println(lock.Run(ctx, func() {}), lock.Dispose(ctx))
	// Output:
	// acquired none
	// released released
	// disposed none
	// <nil> <nil>
}
