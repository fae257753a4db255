//go:build torture

package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/lifecycle"
)

func TestGate_Schedules(t *testing.T) {
	const n = 10_000
	all := schedules(t, n)
	var counts []string
	for what, n := range all {
		counts = append(counts, fmt.Sprintf("%s %d", what, n))
	}
	slices.Sort(counts)
	var seeds []string
	for _, p := range plants {
		seed, ok := noticed(t, p)
		if !ok {
			t.Errorf("no schedule noticed that %s", p.name)
		}
		seeds = append(seeds, fmt.Sprint(seed))
	}
	t.Logf("GATE schedules: %d random schedules, no fault; %s; %d planted faults noticed by seeds %s",
		n, strings.Join(counts, ", "), len(plants), strings.Join(seeds, ", "))
}

// payload is a value of a user's context.
type payload [256]byte

type payloadKey struct{}

// remains are what could be left of a lifecycle.
type remains struct {
	machine weak.Pointer[lifecycle.Machine]
	hold    weak.Pointer[lifecycle.Hold]
	value   weak.Pointer[payload]
}

// oneLife takes m through the i-th kind of lifecycle. keep gets the hold.
func oneLife(t *testing.T, m *lifecycle.Machine, store *bare, i int, keep func(*lifecycle.Hold)) (r remains) {
	value := &payload{byte(i)}
	r.machine, r.value = weak.Make(m), weak.Make(value)
	ctx, cancel := context.WithCancel(context.WithValue(background, payloadKey{}, value))
	defer cancel()
	body := func(ctx context.Context, h *lifecycle.Hold) error {
		r.hold = weak.Make(h)
		keep(h)
		switch i % 6 {
		case 1:
			panic(panicValue)
		case 2:
			runtime.Goexit()
		case 3:
			store.refuses.Store(true)
			<-ctx.Done()
			store.refuses.Store(false)
		case 4:
			time.Sleep(ttl) // some heartbeats
		}
		return nil
	}
	if i%6 == 5 {
		if ok, err := m.Acquire(ctx); !ok || err != nil {
			t.Errorf("Acquire = %v, %v", ok, err)
		}
		if err := m.Run(ctx, body); !errors.Is(err, lockfx.ErrNotIdle) {
			t.Errorf("Run = %v", err)
		}
		if ok, err := m.Release(ctx); !ok || err != nil {
			t.Errorf("Release = %v, %v", ok, err)
		}
		return r
	}
	if o := <-spawn(func() error { return m.Run(ctx, body) }); o.err != nil && !errors.Is(o.err, lockfx.ErrLost) {
		t.Errorf("Run = %v", o.err)
	}
	return r
}

// bare is a store that remembers nothing but the last token.
type bare struct {
	last    lockfx.Token
	refuses atomic.Bool // to renew
}

func (s *bare) Acquire(context.Context, string, time.Duration) (lockfx.Grant, error) {
	s.last++
	return lockfx.Grant{OK: true, Token: s.last}, nil
}

func (s *bare) Renew(context.Context, string, lockfx.Token, time.Duration) (bool, error) {
	return !s.refuses.Load(), nil
}

func (s *bare) Release(context.Context, string, lockfx.Token) (bool, error) { return true, nil }

// retained says what n lifecycles leave behind: objects, bytes and timers. With
// fresh, each has a machine of its own, which is disposed of.
func retained(t *testing.T, n int, fresh bool, keep func(*lifecycle.Hold)) (objects int, bytes, timers int64) {
	synctest.Test(t, func(t *testing.T) {
		store, clock := &bare{}, newClock()
		make1 := func() *lifecycle.Machine {
			m, err := lifecycle.New(lifecycle.Config{Key: key, Store: store, TTL: ttl, Clock: clock})
			if err != nil {
				t.Fatal(err)
			}
			return m
		}
		shared := make1()
		all := make([]remains, n)
		live := func(keep func(*lifecycle.Hold)) {
			for i := range all {
				m := shared
				if fresh {
					m = make1()
				}
				all[i] = oneLife(t, m, store, i, keep)
				if fresh {
					if err := m.Dispose(background); err != nil {
						t.Errorf("Dispose: %v", err)
					}
				}
			}
		}
		live(func(*lifecycle.Hold) {}) // warm up
		before := heap()
		live(keep)
		synctest.Wait()
		bytes, timers = heap()-before, clock.armed.Load()
		for _, r := range all {
			if fresh && r.machine.Value() != nil {
				objects++
			}
			if r.hold.Value() != nil {
				objects++
			}
			if r.value.Value() != nil {
				objects++
			}
		}
		runtime.KeepAlive(shared)
	})
	return objects, bytes, timers
}

func TestGate_Retention(t *testing.T) {
	const (
		n     = 10_000
		most  = 64 << 10 // bytes
		loose = 4        // objects that a stack or a register may still show
	)
	for _, fresh := range []bool{false, true} {
		kind := "one lock"
		if fresh {
			kind = "a lock for each"
		}
		objects, bytes, timers := retained(t, n, fresh, func(*lifecycle.Hold) {})
		if objects > loose || bytes > most || timers != 0 {
			t.Errorf("%s: %d objects, %d B and %d timers are left", kind, objects, bytes, timers)
		}
		var kept []*lifecycle.Hold
		keptObjects, keptBytes, _ := retained(t, n, fresh, func(h *lifecycle.Hold) { kept = append(kept, h) })
		if keptObjects <= loose || keptBytes <= most {
			t.Errorf("%s: %d holds are kept, and the check sees %d objects and %d B", kind, len(kept), keptObjects, keptBytes)
		}
		t.Logf("GATE retention, %s: %d lifecycles leave %d objects, %d B and %d timers; with %d holds kept on purpose %d objects and %d B",
			kind, n, objects, bytes, timers, len(kept), keptObjects, keptBytes)
	}
}

// bytesRead returns the bytes that n reads of r allocate: the least of some tries,
// since the runtime allocates at times.
func bytesRead(n int, r hotReader) uint64 {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	least := uint64(math.MaxUint64)
	for range 3 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range n {
			read(r)
		}
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	return least
}

func TestGate_GettersAllocateNothing(t *testing.T) {
	const n = 1_000_000
	var states []string
	withReaders(t, func(state lockfx.State, r hotReader) {
		states = append(states, fmt.Sprintf("%T %v", r, state))
		if got := bytesRead(n, r); got != 0 {
			t.Errorf("%T, %v: %d reads allocate %d B", r, state, n, got)
		}
		if bytesRead(1000, &leakyReader{hotReader: r}) == 0 {
			t.Error("an allocating getter passes")
		}
	})
	t.Logf("GATE getters: 0 B for %d reads of each of %s; a getter that allocates is noticed", n, strings.Join(states, ", "))
}
