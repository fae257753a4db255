package redis_test

import (
	"context"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/integration/redisserver"
	"github.com/lockfx/lockfx/redisstore"
)

// pairs is how often the two sides of a comparison are measured in turn, so that a
// busy moment of the machine hits both.
const pairs = 40

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
	compare(b, 100, func() {
		g := must[lockfx.Grant](b)(store.Acquire(ctx, "ours", time.Minute))
		if !must[bool](b)(store.Release(ctx, "ours", g.Token)) {
			b.Fatal("not released")
		}
	}, func() {
		n++
		tag := strconv.Itoa(n)
		reply := must[any](b)(acquire.Run(ctx, client, []string{"raw{floor}", "raw{floor}:" + tag}, 60_000_000, tag, "", 86_400_000_000).Result())
		token := reply.([]any)[1]
		if must[any](b)(release.Run(ctx, client, []string{"raw{floor}"}, token, tag).Result()) != int64(1) {
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
			return func() { must[*redis.Message](b)(sub.ReceiveMessage(ctx)) }
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
	must[any](b)(sub.Receive(ctx))
	receive := receiver(ctx, sub)
	must[bool](b)(client.SetNX(ctx, "raw", "", time.Minute).Result())

	freed, stop, err := waiter.Watch(ctx, "ours")
	if err != nil {
		b.Fatal(err)
	}
	defer stop()
	held := must[lockfx.Grant](b)(holder.Acquire(ctx, "ours", time.Minute))

	next := make(chan lockfx.Grant)
	compare(b, 50, func() {
		go func() {
			var g lockfx.Grant
			for !g.OK {
				<-freed
				g = must[lockfx.Grant](b)(waiter.Acquire(ctx, "ours", time.Minute))
			}
			next <- g
		}()
		must[bool](b)(holder.Release(ctx, "ours", held.Token))
		held = <-next
	}, func() {
		go func() {
			receive()
			must[bool](b)(other.SetNX(ctx, "raw", "", time.Minute).Result())
			next <- lockfx.Grant{}
		}()
		must[any](b)(free.Run(ctx, client, []string{"raw"}).Result())
		<-next
	})
}

// The wall time of one renewal among a thousand.
func BenchmarkRenewMany(b *testing.B) {
	client := bench(b, true)
	store := benchStore(b, client)
	const held = 1000
	renewals := make([]lockfx.Renewal, held)
	for i := range renewals {
		key := "lock " + strconv.Itoa(i)
		g := must[lockfx.Grant](b)(store.Acquire(b.Context(), key, time.Hour))
		renewals[i] = lockfx.Renewal{Key: key, Token: g.Token, TTL: time.Hour}
	}
	var took []float64
	for b.Loop() {
		begin := time.Now()
		for _, r := range store.RenewMany(b.Context(), renewals) {
			if !r.OK {
				b.Fatal("not renewed: ", r.Err)
			}
		}
		took = append(took, float64(time.Since(begin)))
	}
	b.ReportMetric(median(took)/held, "ns/renewal")
}
