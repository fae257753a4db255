//go:build torture

package fxlock_test

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

const (
	gateTTL  = 30 * time.Second
	gateBeat = gateTTL / 3
)

// gateStore counts the heartbeats that a memory store granted.
type gateStore struct {
	*fxlock.MemoryStore
	beats int
	keep  func(context.Context) // a planted fault, or nil
}

func newGateStore(clk *gateClock) *gateStore {
	return &gateStore{MemoryStore: fxlock.NewMemoryStore(fxlock.MemoryStoreClock(clk.Now))}
}

func (s *gateStore) Renew(ctx context.Context, key string, token lockfx.Token, ttl time.Duration) (bool, error) {
	if s.keep != nil {
		s.keep(ctx)
	}
	ok, err := s.MemoryStore.Renew(ctx, key, token, ttl)
	if ok {
		s.beats++
	}
	return ok, err
}

// drained checks that the store holds no lease any more.
func (s *gateStore) drained(t *testing.T) {
	t.Helper()
	if lease, err := s.Inspect(context.Background(), "gate"); err != nil || lease != (lockfx.Lease{}) {
		t.Errorf("the store still has %+v (%v)", lease, err)
	}
}

// gateMark is a value that travels in a context.
type gateMark struct{ of *gateClock }

func newGateLock(t *testing.T, store lockfx.Store, clk *gateClock) *fxlock.Lock {
	t.Helper()
	lock, err := fxlock.New(fxlock.WithKey("gate"), fxlock.WithTTL(gateTTL), fxlock.WithStore(store), fxlock.WithClock(clk))
	if err != nil {
		t.Fatal(err)
	}
	return lock
}

// marked returns a context of its own under one that lives on, as a request's is
// under an application's.
func marked(parent context.Context, w *watchlist, clk *gateClock) context.Context {
	return context.WithValue(parent, gateMark{}, watch(w, &gateMark{clk}))
}

func acquire(ctx context.Context, t *testing.T, lock *fxlock.Lock) {
	t.Helper()
	if ok, err := lock.Acquire(ctx); !ok || err != nil {
		t.Fatalf("acquire: %v, %v", ok, err)
	}
}

func release(ctx context.Context, t *testing.T, lock *fxlock.Lock) {
	t.Helper()
	if ok, err := lock.Release(ctx); !ok || err != nil {
		t.Fatalf("release: %v, %v", ok, err)
	}
}

func TestGateRetentionOfLifecycles(t *testing.T) {
	defer goleak.VerifyNone(t)
	const times = 10_000
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	clk := newGateClock()
	store := newGateStore(clk)
	one := newGateLock(t, store, clk)
	lifecycle := func(lock *fxlock.Lock, w *watchlist) {
		ctx := marked(ctx, w, clk)
		beats := store.beats
		acquire(ctx, t, lock)
		clk.advance(gateBeat)
		if store.beats != beats+1 {
			t.Fatalf("%d heartbeats, want one", store.beats-beats)
		}
		release(ctx, t, lock)
	}
	again := func(_ int, w *watchlist) { lifecycle(one, w) }
	anew := func(_ int, w *watchlist) {
		lock := watch(w, newGateLock(t, store, clk))
		lifecycle(lock, w)
		if err := lock.Dispose(ctx); err != nil {
			t.Fatal(err)
		}
	}
	for name, do := range map[string]func(int, *watchlist){"one lock": again, "a lock each": anew} {
		left := retention(times, clk, do)
		if err := left.fault(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		store.drained(t)
		t.Logf("GATE retention of lifecycles, %s: %d times acquire, heartbeat, release; left: %v", name, times, left)
	}

	var kept []context.Context
	store.keep = func(ctx context.Context) { kept = append(kept, ctx) }
	left := retention(1000, clk, again)
	if left.values == 0 || left.fault() == nil {
		t.Errorf("a store that keeps every context left %v", left)
	}
	t.Logf("GATE control of retention of lifecycles, a store that keeps every context: found, it left %v", left)

	store.keep, kept = nil, nil
	clk.deaf = true
	left = retention(1000, clk, again)
	if left.timers == 0 || left.fault() == nil {
		t.Errorf("timers that are never stopped left %v", left)
	}
	t.Logf("GATE control of retention of lifecycles, a clock that stops no timer: found, it left %v", left)
}

func TestGateRetentionOfHeartbeats(t *testing.T) {
	defer goleak.VerifyNone(t)
	const times = 100_000
	clk := newGateClock()
	store := newGateStore(clk)
	lock := newGateLock(t, store, clk)
	ctx := context.Background()
	acquire(ctx, t, lock)
	token := lock.Token()
	beat := func(int, *watchlist) { clk.advance(gateBeat) }

	left := retention(times, clk, beat)
	if err := left.fault(); err != nil {
		t.Error(err)
	}
	if store.beats < times || lock.Token() != token {
		t.Fatalf("%d heartbeats of %d, and token %v after %v", store.beats, times, lock.Token(), token)
	}
	t.Logf("GATE retention of heartbeats: %d heartbeats of one hold; left: %v", times, left)

	var kept []context.Context
	store.keep = func(ctx context.Context) { kept = append(kept, ctx) }
	left = retention(1000, clk, beat)
	if left.bytes <= maxBytes || left.fault() == nil {
		t.Errorf("a store that keeps every context left %v", left)
	}
	t.Logf("GATE control of retention of heartbeats, a store that keeps every context: found, it left %v", left)
	release(ctx, t, lock)
}
