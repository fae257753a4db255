//go:build torture && unix

package filestore_test

import (
	"errors"
	"testing"

	"github.com/lockfx/lockfx/filestore"
	"github.com/lockfx/lockfx/internal/storemodel"
)

func TestGate_FilestoreOverlap(t *testing.T) {
	const holds = 500
	c := compete(t, "take turns", holds)
	t.Logf("GATE filestore overlap: %d holds by %d processes, faults: %v", c.holds, processes, errors.Join(c.byProcess, c.byJournal))
	if c != (competition{holds: processes * holds}) {
		t.Errorf("%+v", c)
	}
	if planted := compete(t, "take turns by a phantom lock", holds); planted.byProcess == nil || planted.byJournal == nil {
		t.Errorf("a phantom lock goes unnoticed: %+v", planted)
	}
}

func TestGate_FilestoreKill(t *testing.T) {
	const kills = 200
	holds, err := killAtRandom(t, "take turns", kills)
	t.Logf("GATE filestore kill: %d holds between %d kills at random moments, faults: %v", holds, kills, err)
	if err != nil || holds < kills {
		t.Error("see above")
	}
	if _, err := killAtRandom(t, "take turns with a stale token", 20); err == nil {
		t.Error("a stale token goes unnoticed")
	}
}

func TestGate_FilestoreKillAtEveryByte(t *testing.T) {
	moments, err := killAtMoments(t, 1)
	t.Logf("GATE filestore kill at every byte: %d moments of an acquisition, faults: %v", moments, err)
	if err != nil || moments < 500 {
		t.Error("see above")
	}
	planted := 0
	for n := 1; n < 250; n++ {
		fault := crashes["acquire an expired key"]
		_, err := survive(t, fault.before, fault.call, func(s *filestore.Store) { crashInPlaceAt(s, n) })
		if errors.Is(err, filestore.ErrCorrupt) {
			planted++
		}
	}
	if planted != 249 {
		t.Errorf("writing in place goes unnoticed %d times", 249-planted)
	}
}

func TestGate_FilestoreCrashAtEveryByte(t *testing.T) {
	moments, err := crashEverywhere(t, 1)
	t.Logf("GATE filestore crash at every byte: %d moments of %d calls, faults: %v", moments, len(crashes), err)
	if err != nil || moments < 2000 {
		t.Error("see above")
	}
}

func TestGate_FilestoreWakeUps(t *testing.T) {
	const rounds = 10_000
	for way, s := range watchers(t) {
		if way == "no news to be had" {
			continue // it polls, at an interval at which this takes half an hour
		}
		err := storemodel.MissedWakeUp(s, rounds, wakes)
		t.Logf("GATE filestore wake-ups by %s: %d races, faults: %v", way, rounds, err)
		if err != nil {
			t.Errorf("%s: %v", way, err)
		}
		if storemodel.MissedWakeUp(storemodel.Deaf{Store: s}, 10, storemodel.Signalled) == nil {
			t.Error("a missed signal goes unnoticed")
		}
	}
}
