//go:build torture

package queue_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestGateHandOffs(t *testing.T) {
	const batches = 100
	many, two := relays(t, crowd, batches, crowdRequests), relays(t, pair, batches, pairRequests)
	var caught []string
	for name, batch := range map[string]batch{
		"a line forgets a waiter": crowd,
		"a signal is lost":        pair,
		"the watch begins after the refusal, and nobody looks again": pair,
	} {
		i := slices.IndexFunc(plants, func(p plant) bool { return p.name == name })
		seed, ok := lost(t, batch, plants[i])
		if !ok {
			t.Errorf("it was not noticed that %s", name)
		}
		caught = append(caught, fmt.Sprintf("%s (batch %d)", name, seed))
	}
	slices.Sort(caught)
	t.Logf("GATE hand-offs: %d in a crowd of 5 processes with 10 waiters each, of whom %d left meanwhile, with %.1f requests each; "+
		"%d between 2 processes, with %.1f requests each; no wake-up was lost; planted faults noticed: %s",
		many.runs, many.left, many.each(), two.runs, two.each(), strings.Join(caught, ", "))
}

func TestGateWaitingSchedules(t *testing.T) {
	const n = 10_000
	var counts []string
	for what, n := range schedules(t, n) {
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
	t.Logf("GATE waiting schedules: %d random schedules, no fault; %s; %d planted faults noticed by seeds %s",
		n, strings.Join(counts, ", "), len(plants), strings.Join(seeds, ", "))
}
