package pg_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/integration/measure"
	"github.com/lockfx/lockfx/integration/pgserver"
	"github.com/lockfx/lockfx/pgstore"
	"github.com/lockfx/lockfx/storetest"
)

// bench opens a server without a proxy, and two tables in it.
func bench(b *testing.B) *pgxpool.Pool {
	b.Helper()
	s, err := pgserver.Start(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	pool, err := pgxpool.New(context.Background(), pgserver.URL(s.Addr()))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		pool.Close()
		s.Stop()
	})
	if err := pgstore.Migrate(b.Context(), pool); err != nil {
		b.Fatal(err)
	}
	return pool
}

func benchStore(b *testing.B, pool *pgxpool.Pool, opts ...pgstore.Option) *pgstore.Store {
	b.Helper()
	store, err := pgstore.New(pool, opts...)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := store.Close(context.Background()); err != nil {
			b.Error(err)
		}
	})
	return store
}

// statement reads one of the store's own files.
func statement(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../pgstore/sql/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// sayAsync makes the server answer every commit before it is on the disk.
func sayAsync(b *testing.B, pool *pgxpool.Pool) {
	b.Helper()
	if _, err := pool.Exec(b.Context(), "ALTER ROLE postgres SET synchronous_commit = off"); err != nil {
		b.Fatal(err)
	}
	pool.Reset()
}

// An uncontended acquire and release, against the same SQL sent by the client alone,
// without the transaction around it.
func BenchmarkAcquireRelease(b *testing.B) {
	b.Run("durable", func(b *testing.B) { benchAcquireRelease(b, bench(b)) })
	b.Run("async", func(b *testing.B) {
		pool := bench(b)
		sayAsync(b, pool)
		benchAcquireRelease(b, pool, pgstore.WithAsyncCommit())
	})
}

func benchAcquireRelease(b *testing.B, pool *pgxpool.Pool, opts ...pgstore.Option) {
	b.Helper()
	store := benchStore(b, pool, opts...)
	ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
	defer cancel()
	table := strings.NewReplacer("{leases}", "lockfx_leases")
	acquire, release := table.Replace(statement(b, "acquire.sql")), table.Replace(statement(b, "release.sql"))
	number := 0
	measure.Compare(b, 100, func() {
		g := measure.Must[lockfx.Grant](b)(store.Acquire(ctx, "ours", time.Minute))
		if !measure.Must[bool](b)(store.Release(ctx, "ours", g.Token)) {
			b.Fatal("not released")
		}
	}, func() {
		number++
		var granted bool
		var token, left int64
		var label string
		row := pool.QueryRow(ctx, acquire, "floor", 1, number, "", time.Minute.Microseconds(), (24 * time.Hour).Microseconds())
		if err := row.Scan(&granted, &token, &label, &left); err != nil || !granted {
			b.Fatal(granted, err)
		}
		if freed := measure.Must[pgconn.CommandTag](b)(pool.Exec(ctx, release, "floor", token, "floor")); freed.RowsAffected() != 1 {
			b.Fatal("not released")
		}
	})
}

// From the start of the old holder's release to the return of the next one's acquire,
// against a DELETE that notifies, a received notification and an INSERT on the bare
// client.
func BenchmarkHandOff(b *testing.B) {
	pool := bench(b)
	store := benchStore(b, pool)
	ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
	defer cancel()
	const (
		take = "INSERT INTO raw VALUES ('key') ON CONFLICT DO NOTHING"
		free = "WITH freed AS (DELETE FROM raw RETURNING key) SELECT pg_notify('raw', key) FROM freed"
	)
	measure.Must[pgconn.CommandTag](b)(pool.Exec(ctx, "CREATE TABLE raw (key text PRIMARY KEY)"))
	pooled := measure.Must[*pgxpool.Conn](b)(pool.Acquire(ctx))
	listener := pooled.Hijack()
	defer listener.Close(ctx) //nolint:errcheck // the end of the benchmark
	measure.Must[pgconn.CommandTag](b)(listener.Exec(ctx, "LISTEN raw"))

	freed, stop, err := store.Watch(ctx, "ours")
	if err != nil {
		b.Fatal(err)
	}
	defer stop()
	held := measure.Must[lockfx.Grant](b)(store.Acquire(ctx, "ours", time.Minute))
	measure.Must[pgconn.CommandTag](b)(pool.Exec(ctx, take))
	measure.Compare(b, 50, func() {
		next := make(chan lockfx.Grant)
		go func() {
			for {
				<-freed
				if g := measure.Must[lockfx.Grant](b)(store.Acquire(ctx, "ours", time.Minute)); g.OK {
					next <- g
					return
				}
			}
		}()
		measure.Must[bool](b)(store.Release(ctx, "ours", held.Token))
		held = <-next
	}, func() {
		next := make(chan struct{})
		go func() {
			measure.Must[*pgconn.Notification](b)(listener.WaitForNotification(ctx))
			measure.Must[pgconn.CommandTag](b)(pool.Exec(ctx, take))
			close(next)
		}()
		measure.Must[pgconn.CommandTag](b)(pool.Exec(ctx, free))
		<-next
	})
}

func BenchmarkRenewMany(b *testing.B) {
	measure.RenewMany(b, benchStore(b, bench(b), pgstore.WithAsyncCommit()))
}

// The operations one by one.
func BenchmarkStore(b *testing.B) {
	pool := bench(b)
	storetest.Bench(b, func() (*storetest.Harness, error) {
		if _, err := pool.Exec(b.Context(), "TRUNCATE lockfx_leases"); err != nil {
			return nil, err
		}
		s, err := pgstore.New(pool)
		return &storetest.Harness{Store: s, TTL: time.Second, Close: func() { _ = s.Close(context.Background()) }}, err
	})
}
