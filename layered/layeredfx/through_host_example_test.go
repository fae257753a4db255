package layeredfx_test

import (
	"context"
	"fmt"

	"go.uber.org/fx"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
	"github.com/lockfx/lockfx/layered"
	"github.com/lockfx/lockfx/layered/layeredfx"
)

// Ten replicas on one host are one contender for the store.
func ExampleThroughHost() {
	app := fx.New(
		fx.NopLogger,
		fxlock.Module("nightly",
			fxlock.WithStore(fxlock.NewMemoryStore()), // in earnest one that hosts share
			fxlock.WaitForever(),
			layeredfx.ThroughHost(layered.WithNamespace("reports")),
		),
		fx.Invoke(func(lock *fxlock.Lock, lc fx.Lifecycle) {
			lc.Append(fx.StartHook(func(ctx context.Context) error {
				return lock.Do(ctx, func(_ context.Context, h lockfx.Holder) error {
					fmt.Println("first on this host, then in the store:", h.Held())
					return nil
				})
			}))
		}),
	)
	if err := app.Start(context.Background()); err != nil {
		fmt.Println(err)
	}
	if err := app.Stop(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output: first on this host, then in the store: true
}
