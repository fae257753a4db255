package pgstore_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/fx"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
	"github.com/lockfx/lockfx/pgstore"
)

// A whole application. The pool closes in OnStop; the lock was built after it, so
// the lock is disposed of and its lease given back before that.
func Example() {
	fx.New(
		fx.Provide(NewPool, NewReports),
		fxlock.Module("nightly",
			fxlock.WithTTL(30*time.Second),
			fxlock.StoreFrom(pgstore.From),
		),
		fx.Invoke(func(*Reports) {}),
	).Run()
}

// NewPool is how an application provides its pool. The table of the locks is made
// when the application starts.
func NewPool(lc fx.Lifecycle) (*pgxpool.Pool, error) {
	pool, err := pgxpool.New(context.Background(), os.Getenv("DATABASE_URL"))
	if err != nil {
		return nil, err
	}
	lc.Append(fx.StartStopHook(
		func(ctx context.Context) error { return pgstore.Migrate(ctx, pool) },
		pool.Close,
	))
	return pool, nil
}

// Reports writes a report, on one instance of the application at a time.
type Reports struct {
	lock *fxlock.Lock
	pool *pgxpool.Pool
}

// NewReports returns reports that run under the lock.
func NewReports(lock *fxlock.Lock, pool *pgxpool.Pool) *Reports { return &Reports{lock, pool} }

// Nightly writes the report unless another instance is at it. The row remembers the
// greatest fence that it has seen, so a writer whose lease has passed on is refused.
func (r *Reports) Nightly(ctx context.Context, report string) error {
	return r.lock.Run(ctx, func(ctx context.Context, fence lockfx.Token) error {
		written, err := r.pool.Exec(ctx, "UPDATE report SET text = $1, fence = $2 WHERE fence <= $2", report, int64(fence))
		if err == nil && written.RowsAffected() == 0 {
			err = fmt.Errorf("write the report with fence %v: %w", fence, lockfx.ErrStaleToken)
		}
		return err
	})
}

// A store with options is built by a constructor of the application.
func ExampleNew() {
	_ = fxlock.Module("nightly", fxlock.StoreFrom(
		func(pool *pgxpool.Pool) (*pgstore.Store, error) {
			return pgstore.New(pool, pgstore.WithSchema("jobs"), pgstore.WithMemory(time.Hour))
		},
	))
}

// A store whose heartbeats do not wait for the bodies that use the pool.
func ExampleWithConnections() {
	_ = fxlock.Module("nightly",
		fxlock.StoreFrom(func(pool *pgxpool.Pool) (*pgstore.Store, error) {
			return pgstore.New(pool, pgstore.WithConnections(1))
		}),
	)
}

// Those who run their migrations themselves print the SQL.
func ExampleSchemaSQL() {
	sql, err := pgstore.SchemaSQL(pgstore.WithSchema("jobs"), pgstore.WithTable("leases"))
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(sql)
	// Output:
	// CREATE SCHEMA IF NOT EXISTS "jobs";
	//
	// -- One row for each key that was used lately.
	// CREATE TABLE IF NOT EXISTS "jobs"."leases" (
	//     key        text COLLATE "C" PRIMARY KEY CHECK (octet_length(key) BETWEEN 1 AND 512),
	//     token      bigint NOT NULL,                           -- the last one issued
	//     client     bigint NOT NULL DEFAULT 0,                 -- whose request was the last to grant or renew the lease,
	//     request    bigint NOT NULL DEFAULT 0,                 -- and its number: an earlier one that arrives later does nothing
	//     label      text NOT NULL,                             -- of the holder, for people
	//     expires    timestamptz NOT NULL,                      -- the end of the lease; -infinity once it was freed
	//     watched    timestamptz NOT NULL DEFAULT '-infinity',  -- until then, freeing the key notifies
	//     tombstones jsonb NOT NULL DEFAULT '{}',               -- by client: its last acquisition that must not be granted
	//     forget_at  timestamptz NOT NULL                       -- when the row may be deleted
	// ) WITH (fillfactor = 50);
	// CREATE INDEX IF NOT EXISTS "leases_forget_at" ON "jobs"."leases" (forget_at);
	//
	// -- A table of version 0.1.0 keeps its leases and tokens. A process of that version can
	// -- renew and release on it, and acquires nothing: it misses the columns that go.
	// ALTER TABLE "jobs"."leases"
	//     ADD COLUMN IF NOT EXISTS client     bigint NOT NULL DEFAULT 0,
	//     ADD COLUMN IF NOT EXISTS request    bigint NOT NULL DEFAULT 0,
	//     ADD COLUMN IF NOT EXISTS watched    timestamptz NOT NULL DEFAULT '-infinity',
	//     ADD COLUMN IF NOT EXISTS tombstones jsonb NOT NULL DEFAULT '{}',
	//     DROP COLUMN IF EXISTS tag,
	//     DROP COLUMN IF EXISTS undone;
}
