package etcd_test

import (
	"context"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/etcdstore"
	"github.com/lockfx/lockfx/integration/etcdserver"
)

// pairs is how often the two sides of a comparison are measured in turn, so that a
// busy moment of the machine hits both.
const pairs = 40

// compare reports the p50 of ours and of the floor, and the median of the ratios of
// the pairs.
func compare(b *testing.B, each int, ours, floor func()) {
	b.Helper()
	for range b.N {
		var ratios, our, raw []float64
		for range pairs {
			f := p50(each, floor)
			o := p50(each, ours)
			ratios, our, raw = append(ratios, o/f), append(our, o), append(raw, f)
		}
		b.ReportMetric(median(our), "ns/ours")
		b.ReportMetric(median(raw), "ns/floor")
		b.ReportMetric(median(ratios), "ratio")
	}
}

func p50(n int, op func()) float64 {
	took := make([]float64, n)
	for i := range took {
		begin := time.Now()
		op()
		took[i] = float64(time.Since(begin))
	}
	return median(took)
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

func must[T any](b *testing.B) func(T, error) T {
	return func(v T, err error) T {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
		return v
	}
}

// bench starts one member without a proxy.
func bench(b *testing.B) *clientv3.Client {
	b.Helper()
	client := must[*clientv3.Client](b)(etcdserver.Client(start(b, 1, etcdserver.Ordinary).Addrs()...))
	b.Cleanup(func() { _ = client.Close() })
	return client
}

func benchStore(b *testing.B, client *clientv3.Client, opts ...etcdstore.Option) *etcdstore.Store {
	b.Helper()
	store := must[*etcdstore.Store](b)(etcdstore.New(client, opts...))
	b.Cleanup(func() {
		if err := store.Close(context.Background()); err != nil {
			b.Error(err)
		}
	})
	return store
}

// barePut and bareDelete are what the store decides with, sent by the client alone.
func barePut(ctx context.Context, c *clientv3.Client) (*clientv3.TxnResponse, error) {
	return c.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision("raw"), "=", 0)).
		Then(clientv3.OpPut("raw", "")).Else(clientv3.OpGet("raw")).Commit()
}

func bareDelete(ctx context.Context, c *clientv3.Client, rev int64) (*clientv3.TxnResponse, error) {
	return c.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision("raw"), "=", rev)).
		Then(clientv3.OpDelete("raw")).Commit()
}

// An uncontended acquire and release, against a bare pair of transactions.
func BenchmarkAcquireRelease(b *testing.B) {
	for name, opts := range map[string][]etcdstore.Option{"alone": nil, "pool": {etcdstore.WithPool(4)}} {
		b.Run(name, func(b *testing.B) {
			client := bench(b)
			store := benchStore(b, client, opts...)
			ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
			defer cancel()
			compare(b, 50, func() {
				g := must[lockfx.Grant](b)(store.Acquire(ctx, "ours", time.Minute))
				if !must[bool](b)(store.Release(ctx, "ours", g.Token)) {
					b.Fatal("not released")
				}
			}, func() {
				put := must[*clientv3.TxnResponse](b)(barePut(ctx, client))
				if !must[*clientv3.TxnResponse](b)(bareDelete(ctx, client, put.Header.Revision)).Succeeded {
					b.Fatal("not deleted")
				}
			})
		})
	}
}

// From the start of the old holder's release to the return of the next one's acquire,
// against a deletion, a watch of the client, and a put.
func BenchmarkHandOff(b *testing.B) {
	for name, opts := range map[string][]etcdstore.Option{"alone": nil, "pool": {etcdstore.WithPool(4)}} {
		b.Run(name, func(b *testing.B) {
			client := bench(b)
			store := benchStore(b, client, opts...)
			ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
			defer cancel()
			deleted := client.Watch(ctx, "raw", clientv3.WithFilterPut())
			freed, stop, err := store.Watch(ctx, "ours")
			if err != nil {
				b.Fatal(err)
			}
			defer stop()
			held := must[lockfx.Grant](b)(store.Acquire(ctx, "ours", time.Minute))
			raw := must[*clientv3.TxnResponse](b)(barePut(ctx, client)).Header.Revision
			compare(b, 30, func() {
				next := make(chan lockfx.Grant)
				go func() {
					for {
						<-freed
						if g := must[lockfx.Grant](b)(store.Acquire(ctx, "ours", time.Minute)); g.OK {
							next <- g
							return
						}
					}
				}()
				must[bool](b)(store.Release(ctx, "ours", held.Token))
				held = <-next
			}, func() {
				next := make(chan int64)
				go func() {
					<-deleted
					next <- must[*clientv3.TxnResponse](b)(barePut(ctx, client)).Header.Revision
				}()
				must[*clientv3.TxnResponse](b)(bareDelete(ctx, client, raw))
				raw = <-next
			})
		})
	}
}

// A renewal, against KeepAliveOnce alone, which does not look at the key.
func BenchmarkRenew(b *testing.B) {
	client := bench(b)
	store := benchStore(b, client)
	ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
	defer cancel()
	held := must[lockfx.Grant](b)(store.Acquire(ctx, "ours", time.Hour))
	lease := must[*clientv3.LeaseGrantResponse](b)(client.Grant(ctx, 3600))
	compare(b, 50, func() {
		if !must[bool](b)(store.Renew(ctx, "ours", held.Token, time.Hour)) {
			b.Fatal("not renewed")
		}
	}, func() { must[*clientv3.LeaseKeepAliveResponse](b)(client.KeepAliveOnce(ctx, lease.ID)) })
}
