package memstore_test

import (
	"testing"
	"time"

	"github.com/lockfx/lockfx/internal/storemodel"
)

// full is a store with all the capabilities of the one under test.
type full = storemodel.Store

func compared(c *storemodel.Clock, seed uint64) storemodel.Comparison {
	return storemodel.Comparison{Clock: c, Seed: seed, Operations: 20_000, Unit: time.Nanosecond, Wakes: storemodel.Signalled}
}

func TestStoreAgreesWithTheModel(t *testing.T) {
	for seed := range uint64(10) {
		s, c := newStore()
		if err := compared(c, seed).Disagreement(s); err != nil {
			t.Error(err)
		}
	}
}

func TestModelNoticesPlantedFaults(t *testing.T) {
	for i := range compared(nil, 1).Faults() {
		s, c := newStore()
		with := compared(c, 1)
		faulty := with.Faults()[i](s)
		if with.Disagreement(faulty) == nil {
			t.Errorf("%T goes unnoticed", faulty)
		}
	}
}
