package lifecycle_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/lifecycle"
)

// plant is a fault that a schedule must notice.
type plant struct {
	name   string
	store  func(lockfx.Store) lockfx.Store
	lock   func(lock) lock
	config func(*lifecycle.Config)
	fault  string // what is noticed
}

var plants = []plant{
	{
		name:  "a renewal is made twice at once",
		store: func(s lockfx.Store) lockfx.Store { return doubleRenew{s} },
		fault: "overlap",
	},
	{
		name:  "a released lease is renewed",
		store: func(s lockfx.Store) lockfx.Store { return zombieRenew{s} },
		fault: "after its release",
	},
	{
		name:  "a lease is given back under its body",
		store: func(s lockfx.Store) lockfx.Store { return earlyRelease{s} },
		fault: "under its body",
	},
	{
		name:  "nothing is ever released",
		store: func(s lockfx.Store) lockfx.Store { return noRelease{s} },
		fault: "was given back 0 times",
	},
	{
		name:  "a lost lease is still held",
		lock:  func(l lock) lock { return optimist{l} },
		fault: "held after the deadline",
	},
	{
		name: "OnLost is called twice",
		config: func(c *lifecycle.Config) {
			once := c.OnLost
			c.OnLost = func(r lockfx.Reason) { once(r); once(r) }
		},
		fault: "OnLost heard",
	},
	{
		name:   "OnLost is not called",
		config: func(c *lifecycle.Config) { c.OnLost = func(lockfx.Reason) {} },
		fault:  "OnLost heard []",
	},
	{
		name:   "the loss is declared a nanosecond late",
		config: func(c *lifecycle.Config) { c.Clock = lateClock{c.Clock} },
		fault:  "1ns after its deadline",
	},
	{
		name:   "timers are not stopped",
		config: func(c *lifecycle.Config) { c.Clock = leakyClock{c.Clock} },
		fault:  "timers are armed",
	},
}

// The planted faults.
type (
	doubleRenew  struct{ lockfx.Store }
	zombieRenew  struct{ lockfx.Store }
	earlyRelease struct{ lockfx.Store }
	noRelease    struct{ lockfx.Store }
	optimist     struct{ lock }
	lateClock    struct{ lockfx.Clock }
	leakyClock   struct{ lockfx.Clock }
)

func (s doubleRenew) Renew(ctx context.Context, k string, token lockfx.Token, d time.Duration) (bool, error) {
	second := spawn(func() error { _, err := s.Store.Renew(ctx, k, token, d); return err })
	defer func() { <-second }()
	return s.Store.Renew(ctx, k, token, d)
}

func (s zombieRenew) Release(ctx context.Context, k string, token lockfx.Token) (bool, error) {
	defer func() { <-spawn(func() error { _, err := s.Renew(ctx, k, token, 1); return err }) }()
	return s.Store.Release(ctx, k, token)
}

func (s earlyRelease) Renew(ctx context.Context, k string, token lockfx.Token, _ time.Duration) (bool, error) {
	return s.Release(ctx, k, token)
}

func (s noRelease) Release(context.Context, string, lockfx.Token) (bool, error) { return true, nil }

func (l optimist) Held() bool { return l.State() == lockfx.StateHeld || l.State() == lockfx.StateLost }

func (c lateClock) AfterFunc(d time.Duration, f func()) lockfx.Timer {
	return c.Clock.AfterFunc(d+1, f)
}

func (c leakyClock) AfterFunc(d time.Duration, f func()) lockfx.Timer {
	_ = c.Clock.AfterFunc(d+time.Hour, func() {})
	return c.Clock.AfterFunc(d, f)
}

// schedule lets a few goroutines use one lock at random for a while, and returns
// what went wrong and what happened.
func schedule(t *testing.T, seed uint64, p plant) (faults []string, seen tally) {
	defer func() {
		if r := recover(); r != nil {
			panic(fmt.Sprintf("seed %d: %v", seed, r))
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(seed, 0))
		clock := newClock()
		w := &witness{random: random, leases: map[lockfx.Token]*lease{}, tally: tally{}}
		// The leaps of this clock have no use here, and its times cannot be compared
		// with those of the bubble.
		timers := bubbleClock{clock}
		w.cfg = lifecycle.Config{
			Key: key, TTL: []time.Duration{time.Second, 3 * time.Second, ttl}[random.IntN(3)],
			RenewRetry: random.IntN(2) == 0, Clock: timers,
			OnLost: w.hearLoss, Observers: []func(lockfx.Event){w.observe},
		}
		w.cfg.Heartbeat = w.cfg.TTL / time.Duration(2+random.IntN(8))
		w.cfg.ReleaseTimeout = w.cfg.TTL
		w.cfg.Store = w
		if p.store != nil {
			w.cfg.Store = p.store(w)
		}
		if p.config != nil {
			p.config(&w.cfg)
		}
		machine, err := lifecycle.New(w.cfg)
		if err != nil {
			t.Fatal(err)
		}
		w.lock = machine
		if p.lock != nil {
			w.lock = p.lock(machine)
		}

		var actors sync.WaitGroup
		for i := range 3 {
			act := rand.New(rand.NewPCG(seed, uint64(i)+1))
			actors.Go(func() { w.act(act) })
		}
		actors.Wait()
		dispose(background, w.lock)
		synctest.Wait()
		w.end(clock.armed.Load())
		time.Sleep(10 * w.cfg.TTL)
		synctest.Wait()

		w.mu.Lock()
		defer w.mu.Unlock()
		faults, seen = w.faults, w.tally
	})
	return faults, seen
}

// bubbleClock counts timers, and tells the time of the bubble.
type bubbleClock struct{ *clock }

func (bubbleClock) Now() time.Time { return time.Now() }

// act uses the lock at random.
func (w *witness) act(random *rand.Rand) {
	ttl := w.cfg.TTL
	for range 3 + random.IntN(6) {
		time.Sleep(time.Duration(random.Int64N(int64(ttl))))
		ctx, cancel := context.WithCancel(background)
		if random.IntN(2) == 0 {
			ctx, cancel = context.WithTimeoutCause(background, time.Duration(random.Int64N(2*int64(ttl))), errCause)
		}
		switch random.IntN(20) {
		case 0, 1, 2, 3, 4:
			w.run(ctx)
		case 5, 6, 7, 8, 9:
			<-spawn(func() error { _, err := w.lock.Acquire(ctx); return err })
		case 10, 11, 12:
			<-spawn(func() error { _, err := w.lock.Release(ctx); return err })
		case 13, 14, 15:
			<-spawn(func() error { _, err := w.lock.Tick(ctx); return err })
		case 16:
			brief, cancel := context.WithTimeout(ctx, time.Duration(random.Int64N(int64(ttl))))
			dispose(brief, w.lock)
			cancel()
		default:
			w.look()
		}
		cancel()
	}
}

// dispose disposes of l, although the store may end the goroutine that does.
func dispose(ctx context.Context, l lock) {
	for !(<-spawn(func() error { _ = l.Dispose(ctx); return nil })).returned {
	}
}

// schedules runs n of them. It fails if one of them went wrong, or if something
// that can happen did not happen in any.
func schedules(t *testing.T, n uint64) tally {
	t.Helper()
	all := tally{}
	for seed := range n {
		faults, seen := schedule(t, seed, plant{})
		all.add(seen)
		for _, fault := range faults {
			t.Errorf("seed %d: %s", seed, fault)
		}
	}
	for _, what := range []string{
		"acquired", "refused", "failed", "renewals", "renew failed", "lost", "released", "disposed",
		"lost: heartbeat failed", "lost: store error", "lost: expired", "lost: disposed",
	} {
		if all[what] == 0 {
			t.Errorf("in %d schedules nothing was %s", n, what)
		}
	}
	return all
}

// noticed returns the seed of the first schedule that notices p.
func noticed(t *testing.T, p plant) (uint64, bool) {
	t.Helper()
	for seed := range uint64(200) {
		faults, _ := schedule(t, seed, p)
		if strings.Contains(strings.Join(faults, "\n"), p.fault) {
			return seed, true
		}
	}
	return 0, false
}

func TestSchedules(t *testing.T) { schedules(t, 500) }

func TestSchedulesNoticePlantedFaults(t *testing.T) {
	for _, p := range plants {
		t.Run(p.name, func(t *testing.T) {
			if _, ok := noticed(t, p); !ok {
				t.Errorf("200 schedules did not notice that %s: %q", p.name, p.fault)
			}
		})
	}
}
