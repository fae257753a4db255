package etcdstore_test

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/fx"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/etcdstore"
	"github.com/lockfx/lockfx/fxlock"
)

// A whole application. The client closes in OnStop; the lock was built after it, so
// the lock is disposed of and its lease given back before that.
func Example() {
	fx.New(
		fx.Provide(NewClient, NewReports),
		fxlock.Module("nightly",
			fxlock.WithTTL(30*time.Second),
			fxlock.StoreFrom(etcdstore.From),
		),
		fx.Invoke(func(*Reports) {}),
	).Run()
}

// NewClient is how an application provides its client.
func NewClient(lc fx.Lifecycle) (*clientv3.Client, error) {
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{"localhost:2379"},
		// Notices a member that has vanished without a word.
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 3 * time.Second,
	})
	if err != nil {
		return nil, err
	}
	lc.Append(fx.StopHook(client.Close))
	return client, nil
}

// Reports writes a report, on one instance of the application at a time.
type Reports struct {
	lock   *fxlock.Lock
	client *clientv3.Client
}

// NewReports returns reports that run under the lock.
func NewReports(lock *fxlock.Lock, client *clientv3.Client) *Reports { return &Reports{lock, client} }

// Nightly writes the report unless another instance is at it. What is kept in the
// same etcd can be guarded by the record of the lock: its create revision is the
// fence, so a writer whose lease has passed on is refused.
func (r *Reports) Nightly(ctx context.Context, report string) error {
	return r.lock.Run(ctx, func(ctx context.Context, fence lockfx.Token) error {
		written, err := r.client.Txn(ctx).
			If(clientv3.Compare(clientv3.CreateRevision("lockfx/nightly"), "=", int64(fence))).
			Then(clientv3.OpPut("report", report)).
			Commit()
		if err == nil && !written.Succeeded {
			err = fmt.Errorf("write the report with fence %v: %w", fence, lockfx.ErrStaleToken)
		}
		return err
	})
}

// A store with options is built by a constructor of the application.
func ExampleNew() {
	_ = fxlock.Module("nightly", fxlock.StoreFrom(
		func(client *clientv3.Client) (*etcdstore.Store, error) {
			return etcdstore.New(client, etcdstore.WithPrefix("reports/locks/"), etcdstore.WithPool(4))
		},
	))
}

func ExampleWithPrefix() {
	fmt.Println(etcdstore.WithPrefix("reports/"))
	_, err := etcdstore.New(nil, etcdstore.WithPrefix("reports"), etcdstore.WithPool(0))
	fmt.Println(err)
	// Output:
	// etcdstore.WithPrefix("reports/")
	// etcdstore: invalid configuration: etcdstore.WithPrefix("reports"): must end with a slash; etcdstore.WithPool(0): must be 1 to 1000; the client must be one that clientv3.New made
}
