package fxlock_test

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/fx"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

// inApp starts an application, calls use, and stops it.
func inApp(use func(ctx context.Context), opts ...fx.Option) {
	app := fx.New(append(opts, fx.NopLogger)...)
	ctx := context.Background()
	if err := app.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	use(ctx)
	if err := app.Stop(ctx); err != nil {
		fmt.Println(err)
	}
}

// A func type of the application is all that its handlers know of the lock.
func ExampleBody() {
	type Table struct{ Rows int }
	type Nightly func(context.Context) error

	var nightly Nightly
	inApp(func(ctx context.Context) {
		fmt.Println(nightly(ctx))
	},
		fx.Supply(&Table{Rows: 3}),
		fxlock.Module("nightly",
			fxlock.WithStore(fxlock.NewMemoryStore()),
			fxlock.Body[Nightly](func(ctx context.Context, fence lockfx.Token, table *Table) error {
				fmt.Println(table.Rows, "rows, fenced:", fence.Valid() && fence == lockfx.TokenFrom(ctx))
				return nil
			})),
		fx.Populate(&nightly))
	// Output:
	// 3 rows, fenced: true
	// <nil>
}

// Inputs of a call are bound like anything else, and values come back.
func ExampleBody_inputs() {
	type Import func(ctx context.Context, file string) (rows int, err error)

	var imports Import
	inApp(func(ctx context.Context) {
		fmt.Println(imports(ctx, "a.csv"))
	},
		fxlock.Module("import",
			fxlock.WithStore(fxlock.NewMemoryStore()),
			fxlock.Body[Import](func(file string, fence lockfx.Token) (int, error) {
				fmt.Println("import", file, fence.Valid())
				return 12, nil
			}, fxlock.WithLabel("importer"))),
		fx.Populate(&imports))
	// Output:
	// import a.csv true
	// 12 <nil>
}

// Run takes a body whose parameters are resolved for each run.
func ExampleLock_Run() {
	type Table struct{ Rows int }

	var lock *fxlock.Lock
	inApp(func(ctx context.Context) {
		err := lock.Run(ctx, func(table *Table, h lockfx.Holder) error {
			fmt.Println(table.Rows, h.Held(), lock.Key(), lock.State(), lock.Held(), lock.Token() == h.Token())
			return nil
		}, fxlock.WithLabel("the nightly report"))
		fmt.Println(err, lock.State(), lock.Token())
	},
		fx.Supply(&Table{Rows: 3}),
		fxlock.Module("nightly",
			fxlock.WithStore(fxlock.NewMemoryStore()),
			fxlock.Share[*Table]()),
		fx.Populate(&lock))
	// Output:
	// 3 true nightly held true true
	// <nil> released 0
}

// Who does not get the lock learns who has it.
func ExampleLock_Do() {
	store := fxlock.NewMemoryStore()
	newLock := func() *fxlock.Lock {
		lock, err := fxlock.New(fxlock.WithKey("nightly"), fxlock.WithTTL(30*time.Second),
			fxlock.WithStore(store), fxlock.WithLabel("web-1"))
		if err != nil {
			panic(err)
		}
		return lock
	}
	one, other := newLock(), newLock()
	err := one.Do(context.Background(), func(ctx context.Context, _ lockfx.Holder) error {
		return other.Do(ctx, func(context.Context, lockfx.Holder) error { return nil })
	})
	fmt.Println(err.Error()[:len(`acquire "nightly": held by web-1`)])
	// Output: acquire "nightly": held by web-1
}

func ExampleRunValue() {
	lock, err := fxlock.New(fxlock.WithKey("nightly"), fxlock.WithTTL(30*time.Second), fxlock.WithStore(fxlock.NewMemoryStore()))
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	fmt.Println(fxlock.RunValue[int](ctx, lock, func(lockfx.Token) (int, error) { return 42, nil }))
	fmt.Println(fxlock.DoValue(ctx, lock, func(context.Context, lockfx.Holder) (string, error) { return "done", nil }))
	// Output:
	// 42 <nil>
	// done <nil>
}

// Acquire is for a hold without a body: who calls it must also release.
func ExampleLock_Acquire() {
	lock, err := fxlock.New(fxlock.WithKey("leader"), fxlock.WithTTL(30*time.Second), fxlock.WithStore(fxlock.NewMemoryStore()))
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	fmt.Println(lock.Acquire(ctx))
	fmt.Println(lock.Tick(ctx)) // a heartbeat by hand; the lock makes its own
	fmt.Println(lock.Release(ctx))
	fmt.Println(lock.Dispose(ctx), lock.State())
	// Output:
	// true <nil>
	// true <nil>
	// true <nil>
	// <nil> released
}
