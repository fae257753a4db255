package redis_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
	"github.com/lockfx/lockfx/redisstore"
)

// An application as people write it: its client closes in OnStop. Case S02: the lock
// is disposed of before, so the lease is given back while a run is under way.
func TestTheLockIsDisposedOfBeforeTheClientCloses(t *testing.T) {
	server := single(t)
	e := over(t, server)
	direct := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer direct.Close() //nolint:errcheck // a test
	outside, err := redisstore.New(direct)
	if err != nil {
		t.Fatal(err)
	}

	var mu sync.Mutex
	var order []string
	note := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, what)
	}
	var lock *fxlock.Lock
	app := fxtest.New(t,
		fx.Provide(func(lc fx.Lifecycle) *redis.Client {
			client := e.client().(*redis.Client)
			lc.Append(fx.StopHook(func() error {
				held, err := outside.Inspect(context.Background(), "nightly")
				if err != nil || held.Token != 0 {
					note("client closes under a lease")
				}
				note("client closes")
				return client.Close()
			}))
			return client
		}),
		fxlock.Module("nightly", fxlock.WithTTL(time.Minute), fxlock.StoreFrom(redisstore.From[*redis.Client])),
		fx.Populate(&lock),
	)
	app.RequireStart()

	running := make(chan lockfx.Token)
	run := call(func() (struct{}, error) {
		return struct{}{}, lock.Run(t.Context(), func(ctx context.Context, fence lockfx.Token) error {
			running <- fence
			<-ctx.Done()
			note("body ends")
			return ctx.Err()
		})
	})
	fence := <-running
	held, err := outside.Inspect(t.Context(), "nightly")
	if err != nil || held.Token != fence || held.Label == "" {
		t.Errorf("the server has %+v, %v; want token %d and a label", held, err, fence)
	}
	app.RequireStop()
	<-run
	mu.Lock()
	defer mu.Unlock()
	if len(order) != 2 || order[0] != "body ends" || order[1] != "client closes" {
		t.Errorf("order of the stop: %q", order)
	}
}

// The processes of an application exclude each other, and a stopped one hands on.
func TestTwoApplicationsTakeTurns(t *testing.T) {
	e := over(t, single(t))
	start := func() (*fxtest.App, *fxlock.Lock) {
		var lock *fxlock.Lock
		app := fxtest.New(t,
			fx.Provide(func() redis.UniversalClient { return e.client() }),
			fxlock.Module("nightly", fxlock.StoreFrom(redisstore.From[redis.UniversalClient])),
			fx.Populate(&lock),
		)
		app.RequireStart()
		return app, lock
	}
	first, held := start()
	second, other := start()
	defer second.RequireStop()
	if ok, err := held.Acquire(t.Context()); !ok || err != nil {
		t.Fatal(ok, err)
	}
	token := held.Token()
	if ok, err := other.Acquire(t.Context()); ok || err != nil {
		t.Errorf("the second application: %v, %v; want a refusal", ok, err)
	}
	first.RequireStop()
	if ok, err := other.Acquire(t.Context()); !ok || err != nil {
		t.Fatalf("after the first has stopped: %v, %v; want a grant", ok, err)
	}
	if other.Token() <= token {
		t.Errorf("token %d after %d", other.Token(), token)
	}
}
