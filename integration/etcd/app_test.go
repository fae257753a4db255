package etcd_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/etcdstore"
	"github.com/lockfx/lockfx/fxlock"
)

// application is one process of an application as people write it: its client closes
// in OnStop. note hears what happens to the lock and to the client.
func (e *engine) application(t *testing.T, note func(string)) (*fxtest.App, *fxlock.Lock, *clientv3.Client) {
	t.Helper()
	var lock *fxlock.Lock
	var client *clientv3.Client
	app := fxtest.New(t,
		fx.Provide(func(lc fx.Lifecycle) (*clientv3.Client, error) {
			client, err := e.client()
			if err != nil {
				return nil, err
			}
			lc.Append(fx.StopHook(func() error {
				note("client closes")
				return client.Close()
			}))
			return client, nil
		}),
		fxlock.Module("nightly",
			fxlock.WithTTL(10*time.Second),
			fxlock.StoreFrom(etcdstore.From),
			fxlock.Observer(func(event lockfx.Event) {
				if event.Err != nil {
					t.Error(event)
				}
				note(event.Kind.String())
			}),
		),
		fx.Populate(&lock, &client),
	)
	app.RequireStart()
	return app, lock, client
}

func silent(string) {}

func TestCase_S02_TheClientClosesAfterTheLock(t *testing.T) {
	e := one(t)
	var mu sync.Mutex
	var order []string
	app, lock, _ := e.application(t, func(what string) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, what)
	})
	running, ended := make(chan lockfx.Token), make(chan error)
	go func() {
		ended <- lock.Run(context.Background(), func(ctx context.Context, fence lockfx.Token) error {
			running <- fence
			<-ctx.Done()
			return nil
		})
	}()
	fence := <-running
	outside, err := etcdstore.From(e.raw(t))
	if err != nil {
		t.Fatal(err)
	}
	if held, err := outside.Inspect(t.Context(), "nightly"); err != nil || held.Token != fence || held.Label == "" {
		t.Errorf("etcd has %+v, %v; want token %v and a label", held, err, fence)
	}
	app.RequireStop()
	if err := <-ended; err != nil && !errors.Is(err, lockfx.ErrDisposed) {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if want := []string{"acquired", "released", "disposed", "client closes"}; !slices.Equal(order, want) {
		t.Errorf("%q, want %q", order, want)
	}
	if l := leases(t, e.raw(t)); len(l) != 0 {
		t.Errorf("leases %v are left", l)
	}
}

// What is kept in the same etcd is guarded by the record of the lock.
func TestTwoApplicationsTakeTurnsAndTheLateWriterIsRefused(t *testing.T) {
	e := one(t)
	first, held, client := e.application(t, silent)
	second, other, _ := e.application(t, silent)
	defer second.RequireStop()
	write := func(fence lockfx.Token) bool {
		answer, err := client.Txn(context.Background()).
			If(clientv3.Compare(clientv3.CreateRevision("lockfx/nightly"), "=", int64(fence))).
			Then(clientv3.OpPut("report", "")).
			Commit()
		if err != nil {
			t.Fatal(err)
		}
		return answer.Succeeded
	}
	if ok, err := held.Acquire(t.Context()); !ok || err != nil {
		t.Fatal(ok, err)
	}
	fence := held.Token()
	if ok, err := other.Acquire(t.Context()); ok || err != nil {
		t.Errorf("the second application: %v, %v; want a refusal", ok, err)
	}
	if !write(fence) {
		t.Error("the holder may not write")
	}
	if ok, err := held.Release(t.Context()); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if ok, err := other.Acquire(t.Context()); !ok || err != nil {
		t.Fatalf("after the first has released: %v, %v; want a grant", ok, err)
	}
	if write(fence) {
		t.Error("a late writer was let through")
	}
	if !write(other.Token()) || other.Token() <= fence {
		t.Errorf("token %v after %v", other.Token(), fence)
	}
	first.RequireStop()
}
