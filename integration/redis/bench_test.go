package redis_test

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/integration/measure"
	"github.com/lockfx/lockfx/integration/redisserver"
	"github.com/lockfx/lockfx/redisstore"
)

// bench opens a server without a proxy. A mindful client ends at deadlines, which
// spares the store a goroutine for each call.
func bench(b *testing.B, mindful bool) *redis.Client {
	b.Helper()
	s, err := redisserver.Start(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: s.Addr(), ContextTimeoutEnabled: mindful})
	b.Cleanup(func() {
		_ = client.Close()
		s.Stop()
	})
	return client
}

func benchStore(b *testing.B, client redis.UniversalClient) *redisstore.Store {
	b.Helper()
	store, err := redisstore.New(client)
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

// script reads one of the store's own scripts.
func script(b *testing.B, name string) *redis.Script {
	b.Helper()
	text, err := os.ReadFile("../../redisstore/" + name)
	if err != nil {
		b.Fatal(err)
	}
	return redis.NewScript(string(text))
}

// An uncontended acquire and release, against the same scripts sent by the client
// alone.
func BenchmarkAcquireRelease(b *testing.B) {
	b.Run("mindful client", func(b *testing.B) { acquireRelease(b, true) })
	b.Run("default client", func(b *testing.B) { acquireRelease(b, false) })
}

func acquireRelease(b *testing.B, mindful bool) {
	b.Helper()
	client := bench(b, mindful)
	store := benchStore(b, client)
	ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
	defer cancel()
	acquire, release := script(b, "acquire.lua"), script(b, "release.lua")
	n := 0
	measure.Compare(b, 100, func() {
		g := measure.Must[lockfx.Grant](b)(store.Acquire(ctx, "ours", time.Minute))
		if !measure.Must[bool](b)(store.Release(ctx, "ours", g.Token)) {
			b.Fatal("not released")
		}
	}, func() {
		n++
		tag := strconv.Itoa(n)
		reply := measure.Must[any](b)(acquire.Run(ctx, client, []string{"raw{floor}", "raw{floor}:" + tag}, 60_000_000, tag, "", 86_400_000_000, "").Result())
		token := reply.([]any)[1]
		if measure.Must[any](b)(release.Run(ctx, client, []string{"raw{floor}", "raw{floor}:freed:" + tag}, token, 60_000).Result()) != int64(1) {
			b.Fatal("not released")
		}
	})
}

// From the start of the old holder's release to the return of the next one's acquire,
// between two stores with a client each, against EVAL{DEL,PUBLISH}, a message and SET
// NX between two bare clients.
//
// Many who wait share a subscription only if its messages are handed on: Channel is
// what go-redis offers for that. Received alone by the one who waits is the least
// that is possible.
func BenchmarkHandOff(b *testing.B) {
	channel := func(_ context.Context, sub *redis.PubSub) func() {
		messages := sub.Channel()
		return func() { <-messages }
	}
	b.Run("channel/mindful clients", func(b *testing.B) { handOff(b, true, channel) })
	b.Run("channel/default clients", func(b *testing.B) { handOff(b, false, channel) })
	b.Run("received/mindful clients", func(b *testing.B) {
		handOff(b, true, func(ctx context.Context, sub *redis.PubSub) func() {
			return func() { measure.Must[*redis.Message](b)(sub.ReceiveMessage(ctx)) }
		})
	})
}

func handOff(b *testing.B, mindful bool, receiver func(context.Context, *redis.PubSub) func()) {
	b.Helper()
	client := bench(b, mindful)
	other := redis.NewClient(&redis.Options{Addr: client.Options().Addr, ContextTimeoutEnabled: mindful})
	defer other.Close() //nolint:errcheck // the end of the benchmark
	holder, waiter := benchStore(b, client), benchStore(b, other)
	ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
	defer cancel()

	free := redis.NewScript(`redis.call('DEL', KEYS[1]); return redis.call('PUBLISH', KEYS[1], '')`)
	sub := other.Subscribe(ctx, "raw")
	defer sub.Close() //nolint:errcheck // the end of the benchmark
	measure.Must[any](b)(sub.Receive(ctx))
	receive := receiver(ctx, sub)
	measure.Must[bool](b)(client.SetNX(ctx, "raw", "", time.Minute).Result())

	freed, stop, err := waiter.Watch(ctx, "ours")
	if err != nil {
		b.Fatal(err)
	}
	defer stop()
	held := measure.Must[lockfx.Grant](b)(holder.Acquire(ctx, "ours", time.Minute))

	next := make(chan lockfx.Grant)
	measure.Compare(b, 50, func() {
		go func() {
			var g lockfx.Grant
			for !g.OK {
				<-freed
				g = measure.Must[lockfx.Grant](b)(waiter.Acquire(ctx, "ours", time.Minute))
			}
			next <- g
		}()
		measure.Must[bool](b)(holder.Release(ctx, "ours", held.Token))
		held = <-next
	}, func() {
		go func() {
			receive()
			measure.Must[bool](b)(other.SetNX(ctx, "raw", "", time.Minute).Result())
			next <- lockfx.Grant{}
		}()
		measure.Must[any](b)(free.Run(ctx, client, []string{"raw"}).Result())
		<-next
	})
}

func BenchmarkRenewMany(b *testing.B) { measure.RenewMany(b, benchStore(b, bench(b, true))) }
