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

// All requests of a handler use one injected lock. While one of them runs under it,
// a second one is told so at once, and with Wait it takes its place in a line.
func ExampleLock() {
	var lock *fxlock.Lock // a field of the handler, from its constructor
	request := func(ctx context.Context, opts ...fxlock.RunOption) error {
		return lock.Run(ctx, func(lockfx.Token) error { return nil }, opts...)
	}
	inApp(func(ctx context.Context) {
		second := make(chan error)
		err := lock.Run(ctx, func() {
			var busy *lockfx.NotAcquiredError
			err := request(ctx) // say 409 Conflict
			fmt.Println("without Wait:", errors.As(err, &busy) && busy.Self)
			go func() { second <- request(ctx, fxlock.Wait(time.Minute)) }()
		})
		fmt.Println("the first:", err)
		fmt.Println("with Wait:", <-second)
	},
		fxlock.Module("nightly", fxlock.WithStore(fxlock.NewMemoryStore())),
		fx.Populate(&lock))
	// Output:
	// without Wait: true
	// the first: <nil>
	// with Wait: <nil>
}

// Three limits are apart from each other: how long to wait, how long a lease lasts
// without a heartbeat, and how long one call of the store may take.
func ExampleWait() {
	store := fxlock.NewMemoryStore()
	newLock := func(opts ...fxlock.Option) *fxlock.Lock {
		lock, err := fxlock.New(append(opts, fxlock.WithKey("import"), fxlock.WithTTL(30*time.Second), fxlock.WithStore(store))...)
		if err != nil {
			panic(err)
		}
		return lock
	}
	first := newLock()
	second := newLock(fxlock.Wait(20*time.Millisecond), fxlock.WithCallTimeout(2*time.Second))
	ctx := context.Background()

	err := first.Run(ctx, func() error {
		return second.Run(ctx, func() {})
	})
	fmt.Println(errors.Is(err, lockfx.ErrTimeout), errors.Is(err, lockfx.ErrNotAcquired))

	waited := make(chan error)
	err = first.Run(ctx, func() {
		go func() { waited <- second.Run(ctx, func() {}, fxlock.WaitForever()) }() // of a run, which wins
	})
	fmt.Println(err, <-waited)
	// Output:
	// true true
	// <nil> <nil>
}

// office is a gate that the night watch holds until it opens.
type office struct{ opens bool }

func (o *office) Enter(_ context.Context, key string, _ time.Duration) (leave func() error, note string, err error) {
	if !o.opens {
		return nil, "", &lockfx.NotAcquiredError{Key: key, HeldBy: "the night watch"}
	}
	return func() error { fmt.Println("out"); return nil }, "through the front door", nil
}

// told is a gate with a bell.
type told struct{ fxlock.Gate }

func (g told) Enter(ctx context.Context, key string, limit time.Duration) (leave func() error, note string, err error) {
	fmt.Println("in, with a limit of", limit)
	return g.Gate.Enter(ctx, key, limit)
}

// A gate, such as a lock of the host, spares the store requests, and decides nothing: if
// another holds it, the store is asked nevertheless. What it says is in the events of the
// run.
func ExampleWithGate() {
	o := new(office)
	lock, err := fxlock.New(fxlock.WithKey("nightly"), fxlock.WithTTL(30*time.Second), fxlock.WithStore(fxlock.NewMemoryStore()),
		fxlock.WithGate(told{o}),
		fxlock.Observer(func(e lockfx.Event) { fmt.Println(e.Kind, e.Gate) }))
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	fmt.Println(lock.Run(ctx, func() {}))
	o.opens = true
	fmt.Println(lock.Run(ctx, func() {}))
	// Output:
	// in, with a limit of 0s
	// acquired not passed: acquire "nightly": held by the night watch
	// released not passed: acquire "nightly": held by the night watch
	// <nil>
	// in, with a limit of 0s
	// acquired through the front door
	// released through the front door
	// out
	// <nil>
}
