package queue_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/lifecycle"
	"github.com/lockfx/lockfx/internal/queue"
)

// schedule lets the callers of a few replicas wait for one key, at random, for a
// while. It returns what went wrong and what happened.
func schedule(t *testing.T, seed uint64, p plant) (faults []string, tally map[string]int) {
	defer func() {
		if r := recover(); r != nil {
			panic(fmt.Sprintf("seed %d: %v", seed, r))
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(seed, 0))
		w := &witness{
			lines: map[*replica][]*caller{}, heads: map[*replica]time.Time{}, hands: map[*replica]bool{}, tally: map[string]int{},
			ttl:    []time.Duration{time.Second, 3 * time.Second, ttl}[random.IntN(3)],
			delays: random.IntN(3) > 0,
			polls:  random.IntN(3) == 0 && p.store == nil,
			calm:   time.Now().Add(-time.Hour),
		}
		w.pace = []time.Duration{w.ttl, 20 * maxLeg}[random.IntN(2)]
		store := newWorldStore(w, rand.New(rand.NewPCG(seed, 1)))
		var shown lockfx.Store = store
		switch {
		case p.store != nil:
			shown = p.store(store)
		case w.polls:
			shown = polled{store}
		}
		var replicas []*replica
		var actors sync.WaitGroup
		for i := range 1 + random.IntN(3) {
			r := &replica{w: w, line: queue.New(), cfg: lifecycle.Config{Key: key, Store: shown, TTL: w.ttl, RenewRetry: random.IntN(2) == 0}}
			if p.line != nil {
				r.line = p.line(r.line)
			}
			var err error
			if r.machine, err = lifecycle.New(r.cfg); err != nil {
				t.Fatal(err)
			}
			replicas = append(replicas, r)
			for j := range 5 {
				act := rand.New(rand.NewPCG(seed, uint64(10*i+j+2)))
				actors.Go(func() { r.act(act) })
			}
		}
		over, stop := context.WithCancel(background)
		var chaos sync.WaitGroup
		if random.IntN(2) == 0 {
			chaos.Go(func() {
				for over.Err() == nil {
					time.Sleep(time.Duration(random.Int64N(int64(3 * w.ttl))))
					if n := random.IntN(8); n < len(replicas) {
						if err := replicas[n].restart(); err != nil {
							t.Errorf("seed %d: %v", seed, err)
						}
						continue
					}
					store.disturb(random)
				}
			})
		}
		actors.Wait()
		stop()
		chaos.Wait()
		for _, r := range replicas {
			if err := r.current().Dispose(background); err != nil {
				w.fault("dispose: %v", err)
			}
			if !r.line.Idle() {
				w.fault("the queue is not empty")
			}
		}
		synctest.Wait()
		store.set(func() {
			if n := len(store.watches); n > 0 {
				w.fault("%d watches are left", n)
			}
		})
		time.Sleep(100 * 3 * ttl)
		faults, tally = w.faults, w.tally
	})
	return faults, tally
}

// act uses the queue at random.
func (p *replica) act(random *rand.Rand) {
	for range 6 {
		time.Sleep(time.Duration(random.Int64N(int64(p.w.pace))))
		m := p.current()
		if random.IntN(8) == 0 && p.line.Idle() {
			p.byHand(m, random)
			continue
		}
		now := time.Now()
		c := &caller{of: p, leaves: farAway}
		r := queue.Request{Machine: m, Limit: queue.Forever}
		ctx, cancel := context.WithCancel(context.WithValue(background, callerKey{}, c))
		switch d := time.Duration(1 + random.Int64N(int64(6*p.w.pace))); random.IntN(4) {
		case 0:
			r.Limit = 0
			c.leaves = now
		case 1:
			r.Limit = d
			c.limit = now.Add(d)
			c.leaves = c.limit
		case 2:
			c.leaves = now.Add(d)
			time.AfterFunc(d, cancel)
		}
		c.waits = r.Limit != 0
		if m.Disposed() {
			c.leaves = now
		}
		p.w.arrive(c)
		outcome := spawnQuietly(func() error {
			return p.line.Run(ctx, r, func(ctx context.Context, h *lifecycle.Hold) error {
				p.w.begin(c, h)
				defer p.w.finish(c)
				defer p.w.cancelled(ctx)
				return work(ctx, p.w.pace, random)
			})
		})
		p.w.end(c, <-outcome)
		cancel()
	}
}

// byHand holds the key for a while without a body.
func (p *replica) byHand(m *lifecycle.Machine, random *rand.Rand) {
	ok, err := m.Acquire(background)
	if !ok || err != nil {
		return
	}
	p.w.byHand(p, true)
	defer p.w.byHand(p, false)
	time.Sleep(time.Duration(random.Int64N(int64(p.w.pace))))
	_, _ = m.Release(background) // it may be lost, or the store down
}

// work is what a body does, and how it ends.
func work(ctx context.Context, pace time.Duration, random *rand.Rand) error {
	select {
	case <-ctx.Done():
	case <-time.After(time.Duration(random.Int64N(int64(pace) / 2))):
	}
	switch random.IntN(10) {
	case 0:
		panic("in a body")
	case 1:
		runtime.Goexit()
	case 2:
		return errDown
	}
	return nil
}

// schedules runs n of them. It fails if one of them went wrong, or if something that
// can happen did not happen in any.
func schedules(t *testing.T, n uint64) map[string]int {
	t.Helper()
	all := map[string]int{}
	for seed := range n {
		faults, tally := schedule(t, seed, plant{})
		for what, n := range tally {
			all[what] += n
		}
		for _, fault := range faults {
			t.Errorf("seed %d: %s", seed, fault)
		}
	}
	for _, what := range []string{"run", "try", "gave up", "grant", "by hand", "stop", "outage", "lost watches", "clock step"} {
		if all[what] == 0 {
			t.Errorf("in %d schedules there was no %s", n, what)
		}
	}
	return all
}

// noticed returns the seed of the first schedule that notices p.
func noticed(t *testing.T, p plant) (uint64, bool) {
	t.Helper()
	for seed := range uint64(1000) {
		if faults, _ := schedule(t, seed, p); strings.Contains(strings.Join(faults, "\n"), p.fault) {
			return seed, true
		}
	}
	return 0, false
}

func TestSchedules(t *testing.T) { schedules(t, 300) }

func TestSchedulesNoticePlantedFaults(t *testing.T) {
	for _, p := range plants {
		t.Run(p.name, func(t *testing.T) {
			if _, ok := noticed(t, p); !ok {
				t.Errorf("1000 schedules did not notice that %s: %q", p.name, p.fault)
			}
		})
	}
}
