package lifecycle_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/lifecycle"
	"github.com/lockfx/lockfx/internal/memstore"
)

// quiet returns a lock that nobody observes.
func quiet(t testing.TB, store lockfx.Store) *lifecycle.Machine {
	t.Helper()
	m, err := lifecycle.New(lifecycle.Config{Key: key, Store: store, TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// hotReader is what a machine and a hold have in common.
type hotReader interface {
	State() lockfx.State
	Held() bool
	Token() lockfx.Token
}

// sink keeps reads from being optimized away.
var sink struct {
	state lockfx.State
	held  bool
	token lockfx.Token
}

func read(r hotReader) { sink.state, sink.held, sink.token = r.State(), r.Held(), r.Token() }

// withReaders calls test with a machine and its hold in each state that lasts.
func withReaders(t *testing.T, test func(state lockfx.State, r hotReader)) {
	t.Helper()
	store := &script{}
	m := quiet(t, store)
	test(lockfx.StateIdle, m)
	var hold *lifecycle.Hold
	if err := m.Run(background, func(_ context.Context, h *lifecycle.Hold) error {
		hold = h
		test(lockfx.StateHeld, m)
		test(lockfx.StateHeld, h)
		return nil
	}); err != nil {
		t.Error(err)
	}
	test(lockfx.StateReleased, m)
	test(lockfx.StateReleased, hold)

	store.renews(always(false, nil))
	_ = m.Run(background, func(ctx context.Context, h *lifecycle.Hold) error {
		if held, err := m.Tick(ctx); held || err == nil {
			t.Errorf("Tick = %v, %v", held, err)
		}
		test(lockfx.StateLost, m)
		test(lockfx.StateLost, h)
		return nil
	})
}

// leakyReader allocates: a planted fault.
type leakyReader struct {
	hotReader
	kept *lockfx.Token
}

func (r *leakyReader) Token() lockfx.Token {
	r.kept = new(lockfx.Token)
	return *r.kept
}

func TestGettersAllocateNothing(t *testing.T) {
	withReaders(t, func(state lockfx.State, r hotReader) {
		if got := r.State(); got != state {
			t.Fatalf("%T is %v, want %v", r, got, state)
		}
		if n := testing.AllocsPerRun(10_000, func() { read(r) }); n != 0 {
			t.Errorf("%T, %v: %v allocations a read", r, state, n)
		}
		leaky := &leakyReader{hotReader: r}
		if n := testing.AllocsPerRun(100, func() { read(leaky) }); n == 0 {
			t.Error("an allocating getter passes")
		}
	})
}

// heap returns the bytes that are reachable.
func heap() int64 {
	var m runtime.MemStats
	for range 3 { // what a finalizer or a pool still held goes with the next one
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// beatsRetain returns the bytes that n heartbeats leave behind, each.
func beatsRetain(t *testing.T, n int, store lockfx.Store) (each float64) {
	synctest.Test(t, func(t *testing.T) {
		m := quiet(t, store)
		if ok, err := m.Acquire(background); !ok || err != nil {
			t.Fatal(ok, err)
		}
		interval := time.Hour / 3
		time.Sleep(1000*interval + 1) // warm up
		before := heap()
		time.Sleep(time.Duration(n) * interval)
		synctest.Wait()
		each = float64(heap()-before) / float64(n)
		if !m.Held() {
			t.Error("the lease was lost")
		}
		if ok, err := m.Release(background); !ok || err != nil {
			t.Error(ok, err)
		}
	})
	return each
}

// hoarder keeps something for each renewal: a planted fault.
type hoarder struct {
	lockfx.Store
	hoard [][]byte
}

func (h *hoarder) Renew(ctx context.Context, k string, token lockfx.Token, d time.Duration) (bool, error) {
	h.hoard = append(h.hoard, make([]byte, 80))
	return h.Store.Renew(ctx, k, token, d)
}

func TestAHeartbeatRetainsNothing(t *testing.T) {
	const most = 64 // bytes
	if each := beatsRetain(t, 100_000, memstore.New()); each > most {
		t.Errorf("a heartbeat retains %.1f B, at most %d are allowed", each, most)
	}
	if each := beatsRetain(t, 10_000, &hoarder{Store: memstore.New()}); each <= most {
		t.Errorf("a store that keeps 80 B for each passes with %.1f B", each)
	}
}

const mostAllocs = 14

func TestARunAllocatesLittle(t *testing.T) {
	m := quiet(t, memstore.New())
	if n := testing.AllocsPerRun(1000, func() { _ = m.Run(background, nothing) }); n > mostAllocs {
		t.Errorf("a run allocates %v times, at most %d are allowed", n, mostAllocs)
	}
}

func BenchmarkRun(b *testing.B) {
	m := quiet(b, memstore.New())
	b.ReportAllocs()
	for b.Loop() {
		if err := m.Run(background, nothing); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGetters(b *testing.B) {
	m := quiet(b, memstore.New())
	if err := m.Run(background, func(_ context.Context, h *lifecycle.Hold) error {
		for name, r := range map[string]hotReader{"machine": m, "hold": h} {
			b.Run(name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					read(r)
				}
			})
		}
		return nil
	}); err != nil {
		b.Fatal(err)
	}
}
