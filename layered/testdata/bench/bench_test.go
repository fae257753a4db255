// Package bench measures the layers of package layered, without WithLock, beside
// peers, which stay out of the go.mod of others. It is a module of its own, outside
// of the workspace:
//
//	GOWORK=off go test -v -bench=. -benchmem
//
// The test judges by the median of the ratios of interleaved rounds, since a machine
// that does other things too slows both sides of a round.
package bench_test

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	gofrs "github.com/gofrs/flock"
	moby "github.com/moby/locker"

	"github.com/lockfx/lockfx/layered"
	"github.com/lockfx/lockfx/layered/internal/fifo"
	"github.com/lockfx/lockfx/layered/internal/flock"
)

// pair is one uncontended lock and unlock.
type pair func()

func ownMemory(testing.TB) pair {
	var set fifo.Set[struct{ namespace, key string }]
	ctx, key := context.Background(), struct{ namespace, key string }{"", "nightly"}
	return func() {
		if set.Lock(ctx, key) == nil {
			set.Unlock(key)
		}
	}
}

func mobyLocker(tb testing.TB) pair {
	l := moby.New()
	return func() {
		l.Lock("nightly")
		if err := l.Unlock("nightly"); err != nil {
			tb.Fatal(err)
		}
	}
}

func ownFlock(tb testing.TB) pair {
	files, path, ctx := new(flock.Files), filepath.Join(tb.TempDir(), "lock"), context.Background()
	tb.Cleanup(files.CloseIdle)
	return func() {
		l, err := files.Lock(ctx, path)
		if err == nil {
			err = l.Unlock()
		}
		if err != nil {
			tb.Fatal(err)
		}
	}
}

func gofrsFlock(tb testing.TB) pair {
	l := gofrs.New(filepath.Join(tb.TempDir(), "lock"))
	return func() {
		if err := l.Lock(); err != nil {
			tb.Fatal(err)
		}
		if err := l.Unlock(); err != nil {
			tb.Fatal(err)
		}
	}
}

// withLock is a whole call in the given scope.
func withLock(scope layered.Scope) func(testing.TB) pair {
	return func(tb testing.TB) pair {
		opts := []layered.Option{layered.WithKey("nightly"), layered.WithDir(tb.TempDir()), layered.WithScope(scope)}
		action := func(context.Context, layered.Call[int]) (int, error) { return 0, nil }
		return func() {
			if _, err := layered.WithLock(context.Background(), 0, action, opts...); err != nil {
				tb.Fatal(err)
			}
		}
	}
}

var (
	onlyMemory = layered.Scope{Worker: layered.Off, Flock: layered.Off, Poll: layered.Off}
	onlyFlock  = layered.Scope{Memory: layered.Off, Worker: layered.Off, Poll: layered.Off}
)

func TestGateLayeredPeers(t *testing.T) {
	if n := testing.AllocsPerRun(1000, ownMemory(t)); n > 1 {
		t.Errorf("memory layer: %v allocations, at most 1 is allowed", n)
	}
	for _, tt := range []struct {
		name      string
		own, peer func(testing.TB) pair
		atMost    float64 // times the peer; 0 states the figure and judges nothing
		inRound   int
	}{
		{"memory layer / moby/locker", ownMemory, mobyLocker, 1.0, 5000},
		{"flock layer / gofrs/flock", ownFlock, gofrsFlock, 0.5, 500},
		{"WithLock in memory / memory layer", withLock(onlyMemory), ownMemory, 0, 1000},
		{"WithLock with flock / flock layer", withLock(onlyFlock), ownFlock, 0, 500},
	} {
		const tries = 3
		for try := 1; ; try++ {
			own, peer, ratio := compare(tt.own(t), tt.peer(t), tt.inRound)
			if tt.atMost != 0 && ratio > tt.atMost && try < tries {
				continue
			}
			if tt.atMost != 0 && ratio > tt.atMost {
				t.Errorf("%s: %.2f, at most %.1f is allowed", tt.name, ratio, tt.atMost)
			}
			t.Logf("GATE layered-peers: %s: %v / %v = %.2f", tt.name, own, peer, ratio)
			break
		}
	}
}

// compare returns the medians of interleaved rounds: one pair of each, and the ratio.
func compare(own, peer pair, inRound int) (ownTime, peerTime time.Duration, ratio float64) {
	const rounds = 40
	var owns, peers []time.Duration
	var ratios []float64
	for range rounds {
		o, p := timeOf(own, inRound), timeOf(peer, inRound)
		owns, peers, ratios = append(owns, o), append(peers, p), append(ratios, float64(o)/float64(p))
	}
	slices.Sort(owns)
	slices.Sort(peers)
	slices.Sort(ratios)
	return owns[rounds/2], peers[rounds/2], ratios[rounds/2]
}

func timeOf(p pair, n int) time.Duration {
	start := time.Now()
	for range n {
		p()
	}
	return time.Since(start) / time.Duration(n)
}

func BenchmarkPair(b *testing.B) {
	for _, bb := range []struct {
		name string
		pair func(testing.TB) pair
	}{
		{"memory/own", ownMemory},
		{"memory/moby-locker", mobyLocker},
		{"memory/WithLock", withLock(onlyMemory)},
		{"flock/own", ownFlock},
		{"flock/gofrs-flock", gofrsFlock},
		{"flock/WithLock", withLock(onlyFlock)},
		{"default/WithLock", withLock(layered.Scope{})},
	} {
		b.Run(bb.name, func(b *testing.B) {
			p := bb.pair(b)
			b.ReportAllocs()
			for b.Loop() {
				p()
			}
		})
	}
}

// BenchmarkContended has eight goroutines on one key.
func BenchmarkContended(b *testing.B) {
	b.Run("own", func(b *testing.B) {
		p := ownMemory(b)
		b.SetParallelism(4)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				p()
			}
		})
	})
	b.Run("moby-locker", func(b *testing.B) {
		p := mobyLocker(b)
		b.SetParallelism(4)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				p()
			}
		})
	})
}
