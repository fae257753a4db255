package etcd_test

import (
	"context"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/etcdstore"
	"github.com/lockfx/lockfx/integration/etcdserver"
	"github.com/lockfx/lockfx/integration/measure"
)

// bench starts one member without a proxy.
func bench(b *testing.B) *clientv3.Client {
	b.Helper()
	client := measure.Must[*clientv3.Client](b)(etcdserver.Client(start(b, 1, etcdserver.Ordinary).Addrs()...))
	b.Cleanup(func() { _ = client.Close() })
	return client
}

func benchStore(b *testing.B, client *clientv3.Client, opts ...etcdstore.Option) *etcdstore.Store {
	b.Helper()
	store := measure.Must[*etcdstore.Store](b)(etcdstore.New(client, opts...))
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
			measure.Compare(b, 50, func() {
				g := measure.Must[lockfx.Grant](b)(store.Acquire(ctx, "ours", time.Minute))
				if !measure.Must[bool](b)(store.Release(ctx, "ours", g.Token)) {
					b.Fatal("not released")
				}
			}, func() {
				put := measure.Must[*clientv3.TxnResponse](b)(barePut(ctx, client))
				if !measure.Must[*clientv3.TxnResponse](b)(bareDelete(ctx, client, put.Header.Revision)).Succeeded {
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
			held := measure.Must[lockfx.Grant](b)(store.Acquire(ctx, "ours", time.Minute))
			raw := measure.Must[*clientv3.TxnResponse](b)(barePut(ctx, client)).Header.Revision
			measure.Compare(b, 30, func() {
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
				next := make(chan int64)
				go func() {
					<-deleted
					next <- measure.Must[*clientv3.TxnResponse](b)(barePut(ctx, client)).Header.Revision
				}()
				measure.Must[*clientv3.TxnResponse](b)(bareDelete(ctx, client, raw))
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
	held := measure.Must[lockfx.Grant](b)(store.Acquire(ctx, "ours", time.Hour))
	lease := measure.Must[*clientv3.LeaseGrantResponse](b)(client.Grant(ctx, 3600))
	measure.Compare(b, 50, func() {
		if !measure.Must[bool](b)(store.Renew(ctx, "ours", held.Token, time.Hour)) {
			b.Fatal("not renewed")
		}
	}, func() { measure.Must[*clientv3.LeaseKeepAliveResponse](b)(client.KeepAliveOnce(ctx, lease.ID)) })
}
