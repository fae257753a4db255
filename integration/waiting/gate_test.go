//go:build torture

package waiting_test

import (
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

func TestGate_GracefulStop(t *testing.T) {
	const rounds, most = 100, 3.0
	overEach(t, func(t *testing.T, e *engine) {
		bare, led := handOffs(t, e, rounds)
		ratio := float64(median(led)) / float64(median(bare))
		t.Logf("GATE graceful stop over %s: %.2f times a bare hand-off (%v, %v; medians of %d)", e.name, ratio, median(led), median(bare), rounds)
		if ratio > most {
			t.Errorf("more than %v times", most)
		}
	})
}

// Five processes are killed, each at another moment between two heartbeats.
func TestGate_KilledLeader(t *testing.T) {
	const (
		processes, keys = 5, 20
		ttl             = 3 * time.Second
		heartbeat       = ttl / 3
		spare           = 150 * time.Millisecond
	)
	overEach(t, func(t *testing.T, e *engine) {
		var mu sync.Mutex // guards took
		var took []time.Duration
		t.Run("kill", func(t *testing.T) {
			for i := range processes {
				t.Run(strconv.Itoa(i), func(t *testing.T) {
					t.Parallel()
					some := takeOvers(t, e, keys, ttl, ttl+heartbeat*time.Duration(i)/processes)
					mu.Lock()
					defer mu.Unlock()
					took = append(took, some...)
				})
			}
		})
		if t.Failed() {
			return
		}
		slices.Sort(took)
		p99 := took[len(took)*99/100-1] // of 100, one may be later
		limit := ttl + spare + e.late
		t.Logf("GATE killed leader over %s: p50 %v, p99 %v, last %v of %d; ttl %v", e.name, median(took), p99, took[len(took)-1], len(took), ttl)
		if p99 > limit {
			t.Errorf("more than %v", limit)
		}
	})
}
