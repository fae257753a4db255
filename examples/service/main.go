// Command service is what a service with lockfx looks like: replicas over one PostgreSQL
// database, of which one at a time migrates the schema, one leads and dispatches orders, and
// one writes the nightly report. Take it as a start.
//
//	DATABASE_URL=postgres://... service -listen :8080
package main

import (
	"context"
	"flag"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
	"github.com/lockfx/lockfx/pgstore"
)

func main() {
	listen := flag.String("listen", ":8080", "the address of the HTTP server")
	flag.Parse()
	fx.New(service(os.Getenv("DATABASE_URL"), *listen)).Run()
}

// service is the application: its parts, and its three locks.
func service(database, listen string) fx.Option {
	return fx.Options(
		fx.Supply(Config{Database: database, Listen: listen}),
		fx.Provide(zap.NewProduction, newPool, newStore, newServer),
		fx.StartTimeout(time.Minute), // for the migration of this replica, and of those before it
		fxlock.Namespace("shop"),
		fxlock.Module("migrations", fxlock.Named(), fxlock.StoreFromGraph(), fxlock.OnStart[Migrated](migrate)),
		fxlock.Module("dispatcher", fxlock.Named(), fxlock.StoreFromGraph(), fxlock.Lead(dispatch, fxlock.After[Migrated]())),
		fxlock.Module("nightly", fxlock.StoreFromGraph(), fxlock.WithRenewRetry(),
			fxlock.Body[Nightly](writeReport, fxlock.SkipOn(lockfx.ErrNotAcquired))),
		fx.Invoke(func(*Server) {}),
	)
}

// Config is what differs from place to place.
type Config struct{ Database, Listen string }

func newPool(lc fx.Lifecycle, c Config) (*pgxpool.Pool, error) {
	pool, err := pgxpool.New(context.Background(), c.Database)
	if err == nil {
		lc.Append(fx.StopHook(pool.Close))
	}
	return pool, err
}

// newStore makes the store of all locks: it makes its table at the start, and is closed
// after the locks.
func newStore(lc fx.Lifecycle, pool *pgxpool.Pool) (lockfx.Store, error) {
	store, err := pgstore.New(pool)
	if err == nil {
		lc.Append(fx.Hook{
			OnStart: func(ctx context.Context) error { return pgstore.Migrate(ctx, pool) },
			OnStop:  store.Close,
		})
	}
	return store, err
}
