package redisstore_test

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/fx"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
	"github.com/lockfx/lockfx/redisstore"
)

// A whole application. The client closes in OnStop; the lock was built after it, so
// the lock is disposed of and its lease given back before that.
func Example() {
	fx.New(
		fx.Provide(NewClient, NewReports),
		fxlock.Module("nightly",
			fxlock.WithTTL(30*time.Second),
			fxlock.StoreFrom(redisstore.From[*redis.Client]),
		),
		fx.Invoke(func(*Reports) {}),
	).Run()
}

// NewClient is how an application provides its client.
func NewClient(lc fx.Lifecycle) *redis.Client {
	client := redis.NewClient(&redis.Options{
		Addr: "localhost:6379",
		// Spares the store a goroutine for each call.
		ContextTimeoutEnabled: true,
	})
	lc.Append(fx.StopHook(client.Close))
	return client
}

// Reports writes a report, on one instance of the application at a time.
type Reports struct{ lock *fxlock.Lock }

// NewReports returns reports that run under the lock.
func NewReports(lock *fxlock.Lock) *Reports { return &Reports{lock} }

// Nightly writes the report unless another instance is at it.
func (r *Reports) Nightly(ctx context.Context) error {
	return r.lock.Run(ctx, func(_ context.Context, fence lockfx.Token) error {
		fmt.Println("the report, fenced by", fence)
		return nil
	})
}

// A store with options is built by a constructor of the application.
func ExampleNew() {
	_ = fxlock.Module("nightly", fxlock.StoreFrom(
		func(client redis.UniversalClient) (*redisstore.Store, error) {
			return redisstore.New(client, redisstore.WithPrefix("reports:"), redisstore.WithMemory(time.Hour))
		},
	))
}

func ExampleWithPrefix() {
	fmt.Println(redisstore.WithPrefix("reports:"))
	_, err := redisstore.New(nil, redisstore.WithPrefix("{reports}"), redisstore.WithMemory(0))
	fmt.Println(err)
	// Output:
	// redisstore.WithPrefix("reports:")
	// redisstore: invalid configuration: redisstore.WithPrefix("{reports}"): must be UTF-8 without braces and NUL; redisstore.WithMemory(0s): must be at least 1s; the client must not be nil
}
