//go:build torture

package fxlock_test

import "testing"

// Ten thousand schedules with partitions, paused processes, clocks that run at
// different rates, stops and restarts: at most one leader at any instant.
func TestGateOneLeader(t *testing.T) {
	t.Logf("GATE one leader at any instant: %v", playAll(t, 10_000, nothing))
	for name, planted := range map[string]plant{
		"IsLeader without the local deadline": noDeadline,
		"leaders from event to event":         eventsAlone,
		"a clock beyond the margin":           badQuartz,
	} {
		all := playAll(t, 200, planted)
		if all.found == 0 {
			t.Errorf("%s: not found", name)
		}
		t.Logf("GATE control of one leader, %s: found; %v", name, all)
	}
}
