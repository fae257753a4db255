package layeredfx_test

import (
	"context"
	"fmt"

	"go.uber.org/fx"

	"github.com/lockfx/lockfx/layered"
	"github.com/lockfx/lockfx/layered/layeredfx"
)

type Cache struct{ locker *layered.Locker }

func (c *Cache) Refresh(ctx context.Context) error {
	_, err := layered.WithLock(ctx, c, func(context.Context, layered.Call[*Cache]) (struct{}, error) {
		fmt.Println("refreshed by one process of this host at a time")
		return struct{}{}, nil
	}, layered.WithKey("cache"), layered.WithLocker(c.locker))
	return err
}

func ExampleModule() {
	app := fx.New(
		fx.NopLogger,
		layeredfx.Module("reports", layered.WithNamespace("reports")),
		fx.Provide(func(l *layered.Locker) *Cache { return &Cache{l} }),
		fx.Invoke(func(c *Cache, lc fx.Lifecycle) { lc.Append(fx.StartHook(c.Refresh)) }),
	)
	if err := app.Start(context.Background()); err != nil {
		fmt.Println(err)
	}
	if err := app.Stop(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output: refreshed by one process of this host at a time
}
