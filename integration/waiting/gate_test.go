//go:build torture

package queue_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/lockfx/lockfx"
)

func TestGate_GracefulStop(t *testing.T) {
	const rounds, most = 100, 3.0
	overEach(t, func(t *testing.T, e *engine) {
		ratio := func(stores func(store) store) float64 {
			bare, led := handOffs(t, e, rounds, stores)
			t.Logf("a stop %v, a bare hand-off %v; medians of %d", median(led), median(bare), rounds)
			return float64(median(led)) / float64(median(bare))
		}
		n := ratio(asTheyAre)
		t.Logf("GATE graceful stop over %s: %.2f times a bare hand-off", e.name, n)
		if n > most {
			t.Errorf("more than %v times", most)
		}
		planted := ratio(func(s store) store { return tardy{s} })
		t.Logf("GATE control of graceful stop over %s: %.2f times when a release comes late", e.name, planted)
		if planted <= most {
			t.Error("a release that comes late was not noticed")
		}
	})
}

// tardy is a planted fault: it lets go late.
type tardy struct{ store }

func (s tardy) Release(ctx context.Context, key string, token lockfx.Token) (bool, error) {
	time.Sleep(20 * time.Millisecond)
	return s.store.Release(ctx, key, token)
}

// Five processes are killed, each at another moment between two heartbeats.
func TestGate_KilledLeader(t *testing.T) {
	const processes, keys, ttl = 5, 20, 3 * time.Second
	overEach(t, func(t *testing.T, e *engine) {
		took := takeOvers(t, e, processes, keys, ttl)
		t.Logf("GATE killed leader over %s: a successor leads after %v at the median, %v at p99 of %d; ttl %v", e.name, median(took), p99(took), len(took), ttl)
		if p99(took) > e.successorWithin(ttl) {
			t.Errorf("more than %v", e.successorWithin(ttl))
		}
	})
}

// A planted fault: the leases last three times as long as they should.
func TestGate_KilledLeaderControl(t *testing.T) {
	const ttl = 2 * time.Second
	overEach(t, func(t *testing.T, e *engine) {
		t.Parallel()
		took := takeOvers(t, e, 1, 10, 3*ttl)
		t.Logf("GATE control of killed leader over %s: %v at p99 under leases of three times %v", e.name, p99(took), ttl)
		if p99(took) <= e.successorWithin(ttl) {
			t.Error("leases of three times the ttl were not noticed")
		}
	})
}

func p99(took []time.Duration) time.Duration {
	return slices.Sorted(slices.Values(took))[(len(took)*99+99)/100-1]
}

// successorWithin is how long after the kill of a leader a successor leads.
func (e *engine) successorWithin(ttl time.Duration) time.Duration {
	return ttl + 150*time.Millisecond + e.late
}
