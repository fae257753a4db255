package memstore_test

import (
	"context"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/storemodel"
)

// heapLimit is what a store may keep after it has seen many keys. A counter for
// each key takes twenty times as much, or more.
const heapLimit = 256 << 10

// heapGrowth returns by how many bytes the live heap is greater after work.
// work gives the store back, so that it is alive when the heap is measured.
func heapGrowth(s lockfx.Store, work func()) int64 {
	before := liveHeap()
	work()
	after := liveHeap()
	runtime.KeepAlive(s)
	return after - before
}

func liveHeap() int64 {
	runtime.GC()
	runtime.GC() // the first one may leave what a finalizer or a pool still held
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func key(i int) string { return "key " + strconv.Itoa(i) }

// workloads are the ways in which keys come and go.
func workloads(t testing.TB, s full, c *storemodel.Clock) map[string]func() {
	return map[string]func(){
		"one after another": func() {
			for i := range manyKeys {
				release(t, s, key(i), grant(t, s, key(i), time.Hour), true)
			}
		},
		"all held at once, then released": func() {
			tokens := make([]lockfx.Token, manyKeys)
			for i := range tokens {
				tokens[i] = grant(t, s, key(i), time.Hour)
			}
			for i, token := range tokens {
				release(t, s, key(i), token, true)
			}
		},
		"all held at once, then all but one broken": func() {
			for i := range manyKeys {
				grant(t, s, key(i), time.Hour)
			}
			for i := range manyKeys - 1 {
				forceFree(t, s, key(i), true)
			}
		},
		"never released, while the clock advances": func() {
			for i := range manyKeys {
				grant(t, s, key(i), time.Millisecond)
				c.Advance(time.Microsecond * 10)
			}
		},
		"few held, while others come and go": func() {
			for i := range 500 {
				grant(t, s, "held "+key(i), time.Hour)
			}
			for i := range manyKeys {
				release(t, s, key(i), grant(t, s, key(i), time.Hour), true)
			}
		},
		"watched one after another": func() {
			for i := range manyKeys {
				_, stop := watch(t, s, key(i))
				stop()
			}
		},
		"watched at once": func() {
			stops := make([]func(), manyKeys/10)
			for i := range stops {
				_, stops[i] = watch(t, s, key(i))
			}
			for _, stop := range stops {
				stop()
			}
		},
	}
}

func TestCase_T03_UnusedKeysCostNoMemory(t *testing.T) {
	names, clk := newStore()
	for name := range workloads(t, names, clk) {
		t.Run(name, func(t *testing.T) {
			s, c := newStore()
			growth := heapGrowth(s, workloads(t, s, c)[name])
			t.Logf("the heap grew by %d bytes", growth)
			if growth > heapLimit {
				t.Errorf("the heap grew by %d bytes; at most %d are allowed", growth, heapLimit)
			}
		})
	}
}

// countsPerKey keeps a counter for each key it ever saw, released or not: a
// planted fault, and the usual way to make tokens rise.
type countsPerKey struct {
	full
	counters map[string]int64
}

func (p countsPerKey) Acquire(ctx context.Context, key string, ttl time.Duration) (lockfx.Grant, error) {
	p.counters[key]++
	return p.full.Acquire(ctx, key, ttl)
}

func TestHeapLimitNoticesACounterForEachKey(t *testing.T) {
	s, c := newStore()
	twin := countsPerKey{s, map[string]int64{}}
	growth := heapGrowth(twin, workloads(t, twin, c)["one after another"])
	t.Logf("the heap grew by %d bytes", growth)
	if growth <= heapLimit {
		t.Errorf("the heap grew by %d bytes only", growth)
	}
}
