package storemodel

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/lockfx/lockfx"
)

// Comparison is how a store is held against the model.
type Comparison struct {
	Clock      *Clock // of the store
	Seed       uint64
	Operations int
	Unit       time.Duration              // ttls are so many of it; not below the store's resolution
	Wakes      func(<-chan struct{}) bool // waits for a signal that is due
}

// Disagreement lets s and the model do the same random operations, and returns the first
// difference. The clock moves forward by steps that often hit an expiry exactly.
func (c Comparison) Disagreement(s Store) error {
	random := rand.New(rand.NewPCG(c.Seed, 1))
	m := &model{clock: c.Clock, unit: c.Unit, wakes: c.Wakes, leases: map[string]modelLease{}, watch: map[string][]*modelWatch{}}
	defer func() {
		for _, watches := range m.watch {
			for _, w := range watches {
				w.stop()
			}
		}
	}()
	for i := range c.Operations {
		key := []string{"a", "b", "c", "host-1", "host-10", fmt.Sprint(random.IntN(1000))}[random.IntN(6)]
		if did, got, want := m.step(s, random, key); got != want {
			return fmt.Errorf("seed %d, operation %d: %s on %q: got %v; want %v", c.Seed, i, did, key, got, want)
		}
	}
	return nil
}

// step does one operation, and returns what the store and the model answered.
func (m *model) step(s Store, random *rand.Rand, key string) (did string, got, want any) {
	ctx, cancel := context.WithCancel(lockfx.WithLabel(context.Background(), fmt.Sprint("label ", random.IntN(3))))
	defer cancel()
	ttl := time.Duration(1+random.IntN(5)) * m.unit
	token := m.anyToken(random, key)
	type answer struct {
		value any
		err   error
	}
	switch random.IntN(9) {
	case 0, 1:
		g, err := s.Acquire(ctx, key, ttl)
		return "acquire", answer{g, err}, answer{m.acquire(key, lockfx.LabelFrom(ctx), ttl), nil}
	case 2:
		ok, err := s.Renew(ctx, key, token, ttl)
		return fmt.Sprint("renew of ", token), answer{ok, err}, answer{m.renew(key, token, ttl), nil}
	case 3:
		ok, err := s.Release(ctx, key, token)
		return fmt.Sprint("release of ", token), answer{ok, err}, answer{token != 0 && m.free(key, token), nil}
	case 4:
		if random.IntN(4) > 0 {
			m.clock.Advance(ttl - 1)
			return "advance", nil, nil
		}
		ok, err := s.Break(ctx, key)
		return "break", answer{ok, err}, answer{m.free(key, 0), nil}
	case 5:
		l, err := s.Inspect(ctx, key)
		return "inspect", answer{l, err}, answer{m.lease(key), nil}
	case 6:
		cancel()
		_, acquireErr := s.Acquire(ctx, key, ttl)
		_, renewErr := s.Renew(ctx, key, token, ttl)
		_, releaseErr := s.Release(ctx, key, token)
		failed := acquireErr != nil && renewErr != nil && releaseErr != nil
		return "calls with a dead ctx", failed, true
	case 7:
		freed, stop, err := s.Watch(ctx, key)
		m.watch[key] = append(m.watch[key], &modelWatch{freed: freed, stop: stop})
		return "watch", err, nil
	default:
		if len(m.watch[key]) == 0 {
			return "no watch", nil, nil
		}
		w := m.watch[key][0]
		m.watch[key] = m.watch[key][1:]
		defer w.stop()
		got := !w.due || m.wakes(w.freed)
		return "signal", got, true // a spurious one is allowed
	}
}
