//go:build torture

package memoize_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/lockfx/lockfx/memoize"
)

// hitRatio returns how much longer hit takes than that of sync.OnceValue: the median of
// several rounds in which the two take turns.
func hitRatio(hit func()) float64 {
	once := sync.OnceValue(func() int { return 1 })
	measure := func(f func()) float64 {
		r := testing.Benchmark(func(b *testing.B) {
			for b.Loop() {
				f()
			}
		})
		return float64(r.T.Nanoseconds()) / float64(r.N)
	}
	var ratios []float64
	for range 5 {
		ratios = append(ratios, measure(hit)/measure(func() { _ = once() }))
	}
	slices.Sort(ratios)
	return ratios[len(ratios)/2]
}

func TestGate_MemoizeHit(t *testing.T) {
	const limit = 2.0
	ctx := t.Context()
	fn := memoize.Func(func(context.Context) (int, error) { return 1, nil })
	value := memoize.Value(func() (int, error) { return 1, nil })
	_, _ = fn(ctx)
	_, _ = value()

	ofFunc, ofValue := hitRatio(func() { _, _ = fn(ctx) }), hitRatio(func() { _, _ = value() })
	t.Logf("GATE memoize hit: Func %.2f, Value %.2f times sync.OnceValue; at most %.1f", ofFunc, ofValue, limit)
	if max(ofFunc, ofValue) > limit {
		t.Error("a hit takes too long")
	}

	// A planted fault: a getter that takes a lock for a hit.
	var mu sync.Mutex
	locked := hitRatio(func() {
		mu.Lock()
		defer mu.Unlock()
		_, _ = value()
	})
	if locked <= limit {
		t.Errorf("the gate does not notice a lock, at %.2f", locked)
	}
}
