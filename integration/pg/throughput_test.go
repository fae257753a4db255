package pg_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/integration/measure"
	"github.com/lockfx/lockfx/integration/pgserver"
)

// Pairs of an acquisition and a release a second, by goroutines that each have a key of
// their own, beside the least that the same could be in SQL: an upsert and an update,
// each its own transaction. Both go to the disk, in turns.
func BenchmarkThroughput(b *testing.B) {
	server := bench(b).Config().ConnConfig
	for _, workers := range []int{1, 8, 32} {
		b.Run(strconv.Itoa(workers), func(b *testing.B) {
			pool := widePool(b, fmt.Sprintf("%s:%d", server.Host, server.Port), workers)
			store := benchStore(b, pool)
			must := measure.Must[pgconn.CommandTag](b)
			must(pool.Exec(b.Context(), "DROP TABLE IF EXISTS plain; CREATE TABLE plain (key text PRIMARY KEY, token bigint NOT NULL, expires timestamptz NOT NULL)"))
			const (
				take = `INSERT INTO plain VALUES ($1, 1, now() + interval '1 minute') ON CONFLICT (key) DO UPDATE
					SET token = plain.token + 1, expires = excluded.expires WHERE plain.expires <= now()`
				free = "UPDATE plain SET expires = '-infinity' WHERE key = $1 AND expires > now()"
			)
			var ours, plain, ratios []float64
			for b.Loop() {
				p := perSecond(workers, func(key string) {
					must(pool.Exec(b.Context(), take, key))
					must(pool.Exec(b.Context(), free, key))
				})
				o := perSecond(workers, func(key string) {
					g := measure.Must[lockfx.Grant](b)(store.Acquire(b.Context(), key, time.Minute))
					if !measure.Must[bool](b)(store.Release(b.Context(), key, g.Token)) {
						b.Error("not released")
					}
				})
				ours, plain, ratios = append(ours, o), append(plain, p), append(ratios, o/p)
			}
			b.ReportMetric(middle(ours), "pairs/s/ours")
			b.ReportMetric(middle(plain), "pairs/s/plain")
			b.ReportMetric(middle(ratios), "ratio")
		})
	}
}

func widePool(b *testing.B, addr string, conns int) *pgxpool.Pool {
	b.Helper()
	config, err := pgxpool.ParseConfig(pgserver.URL(addr))
	if err != nil {
		b.Fatal(err)
	}
	config.MaxConns = int32(conns) //nolint:gosec // a handful
	pool := measure.Must[*pgxpool.Pool](b)(pgxpool.NewWithConfig(context.Background(), config))
	b.Cleanup(pool.Close)
	return pool
}

// perSecond returns how often the workers together get through pair in a second.
func perSecond(workers int, pair func(key string)) float64 {
	const long = time.Second
	var done atomic.Int64
	var wg sync.WaitGroup
	begin := time.Now()
	for i := range workers {
		wg.Go(func() {
			for key := "key " + strconv.Itoa(i); time.Since(begin) < long; done.Add(1) {
				pair(key)
			}
		})
	}
	wg.Wait()
	return float64(done.Load()) / time.Since(begin).Seconds()
}

func middle(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}
