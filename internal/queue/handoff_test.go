package queue_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/lifecycle"
	"github.com/lockfx/lockfx/internal/queue"
)

// relay is what came out of a batch of hand-offs. Nothing in it takes time, so time
// passes only if everybody sleeps: a wake-up was lost, and a safety try, or the end of
// a lease, has to make up for it.
type relay struct {
	runs, left, requests int64
	idle                 time.Duration
}

// relayStore counts requests, and tells of refusals.
type relayStore struct {
	lockfx.Store
	requests *atomic.Int64
	refused  chan struct{} // gets a signal at each refusal
	yields   bool          // to others after a refusal: one processor must not always watch first
}

var _ lockfx.Watcher = (*relayStore)(nil)

func (s *relayStore) Acquire(ctx context.Context, k string, d time.Duration) (lockfx.Grant, error) {
	n := s.requests.Add(1)
	grant, err := s.Store.Acquire(ctx, k, d)
	if !grant.OK && err == nil {
		select {
		case s.refused <- struct{}{}:
		default:
		}
		if s.yields && n%2 == 0 {
			runtime.Gosched()
		}
	}
	return grant, err
}

func (s *relayStore) Release(ctx context.Context, k string, token lockfx.Token) (bool, error) {
	s.requests.Add(1)
	return s.Store.Release(ctx, k, token)
}

func (s *relayStore) Watch(ctx context.Context, k string) (<-chan struct{}, func(), error) {
	s.requests.Add(1)
	return s.Store.(lockfx.Watcher).Watch(ctx, k)
}

// race is some processes in a bubble that hand a key on.
type race struct {
	store *relayStore
	lines []line
	locks []*lifecycle.Machine
	runs  atomic.Int64
	left  atomic.Int64
}

// hold runs f between so many processes, and returns what came out of it.
func hold(t *testing.T, processes int, p plant, f func(*race)) (out relay) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		world := newWorldStore(&witness{ttl: ttl, lines: map[*replica][]*caller{}, tally: map[string]int{}}, nil)
		r := &race{store: &relayStore{Store: world, requests: new(atomic.Int64), refused: make(chan struct{}, 1)}}
		if p.store != nil {
			r.store.Store = p.store(world)
		}
		for range processes {
			m, err := lifecycle.New(lifecycle.Config{Key: key, Store: r.store, TTL: ttl})
			if err != nil {
				t.Fatal(err)
			}
			var l line = queue.New()
			if p.line != nil {
				l = p.line(l)
			}
			r.locks, r.lines = append(r.locks, m), append(r.lines, l)
		}
		began := time.Now()
		f(r)
		out = relay{r.runs.Load(), r.left.Load(), r.store.requests.Load(), time.Since(began)}
		synctest.Wait()
		world.set(func() {
			if n := len(world.watches); n > 0 && p.store == nil {
				t.Errorf("%d watches are left", n)
			}
		})
	})
	return out
}

// run waits for the key as process i.
func (r *race) run(ctx context.Context, i int, body func()) {
	err := r.lines[i].Run(ctx, queue.Request{Machine: r.locks[i], Limit: queue.Forever}, func(context.Context, *lifecycle.Hold) error {
		r.runs.Add(1)
		body()
		return nil
	})
	switch {
	case errors.Is(err, context.Canceled):
		r.left.Add(1)
	case err != nil:
		panic(err)
	}
}

// crowd lets ten callers in each of five processes take turns, n times, without a
// pause. Some of them leave just when others come to their turn.
func crowd(t *testing.T, seed uint64, n int64, p plant) relay {
	t.Helper()
	const processes, callers = 5, 10
	return hold(t, processes, p, func(r *race) {
		var leave [processes * callers]atomic.Pointer[context.CancelFunc]
		var all sync.WaitGroup
		for i := range len(leave) {
			random := rand.New(rand.NewPCG(seed, uint64(i)))
			all.Go(func() {
				for r.runs.Load() < n {
					ctx, cancel := context.WithCancel(background)
					leave[i].Store(&cancel)
					r.run(ctx, i/callers, func() {
						if other := leave[random.IntN(len(leave))].Load(); other != nil && random.IntN(4) == 0 {
							go (*other)()
						}
					})
					cancel()
				}
			})
		}
		all.Wait()
	})
}

// pair lets two processes take turns, n times. Each releases just when the other was
// refused and begins to watch, and does not ask again before the other has run: nobody
// else makes up for a wake-up that was lost.
func pair(t *testing.T, _ uint64, n int64, p plant) relay {
	t.Helper()
	return hold(t, 2, p, func(r *race) {
		r.store.yields = true
		var ran [2]chan struct{}
		for i := range ran {
			ran[i] = make(chan struct{}, n)
		}
		var both sync.WaitGroup
		for i := range ran {
			both.Go(func() {
				for turn := range n / 2 {
					if i+int(turn) > 0 { // not the very first
						<-ran[1-i]
					}
					r.run(background, i, func() {
						select {
						case <-r.store.refused: // of an earlier turn
						default:
						}
						ran[i] <- struct{}{}
						if int64(i)+2*turn < n-1 { // there is a next one
							<-r.store.refused
						}
					})
				}
			})
		}
		both.Wait()
	})
}

// batch makes n hand-offs.
type batch func(t *testing.T, seed uint64, n int64, p plant) relay

// relays makes batches of 1,000 hand-offs, and checks that no wake-up was lost and that
// a hand-off took few requests.
func relays(t *testing.T, run batch, batches uint64, requests float64) (sum relay) {
	t.Helper()
	for seed := range batches {
		r := run(t, seed, 1000, plant{})
		if r.idle > 0 {
			t.Errorf("batch %d: a wake-up was lost: %v passed in idleness", seed, r.idle)
		}
		sum.runs += r.runs
		sum.left += r.left
		sum.requests += r.requests
	}
	if each := sum.each(); each > requests {
		t.Errorf("a hand-off took %.1f requests", each)
	}
	return sum
}

func (r relay) each() float64 { return float64(r.requests) / float64(r.runs) }

// lost returns the first batch that notices p.
func lost(t *testing.T, run batch, p plant) (seed uint64, noticed bool) {
	t.Helper()
	for seed := range uint64(100) {
		if run(t, seed, 1000, p).idle > 0 {
			return seed, true
		}
	}
	return 0, false
}

// Requests of a hand-off, at most: between a crowd of processes, and between two.
const (
	crowdRequests = 25
	pairRequests  = 6
)

func TestNoWakeUpIsLost(t *testing.T) {
	if sum := relays(t, crowd, 3, crowdRequests); sum.left == 0 {
		t.Error("nobody left a line")
	}
	relays(t, pair, 3, pairRequests)
}

func TestLostWakeUpsAreNoticed(t *testing.T) {
	for _, p := range plants {
		switch p.name {
		case "a line forgets a waiter":
			if _, ok := lost(t, crowd, p); !ok {
				t.Errorf("it was not noticed that %s", p.name)
			}
		case "a signal is lost", "the watch begins after the refusal, and nobody looks again":
			if _, ok := lost(t, pair, p); !ok {
				t.Errorf("it was not noticed that %s", p.name)
			}
		}
	}
}
