package filestore_test

import (
	"context"
	"testing"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/filestore"
	"github.com/lockfx/lockfx/internal/storemodel"
)

// full is a store with all the capabilities of the one under test.
type full = storemodel.Store

func compared(c *storemodel.Clock, seed uint64) storemodel.Comparison {
	return storemodel.Comparison{Clock: c, Seed: seed, Operations: 1_000, Unit: time.Millisecond, Wakes: wakes}
}

func TestStoreAgreesWithTheModel(t *testing.T) {
	for seed := range uint64(3) {
		s, c, _ := newStore(t)
		if err := compared(c, seed).Disagreement(s); err != nil {
			t.Error(err)
		}
	}
}

// Two processes are one store: each operation goes to a handle of its own.
func TestManyHandlesAgreeWithTheModel(t *testing.T) {
	s, c, dir := newStore(t)
	handles := []full{s, open(t, dir, filestore.WithNow(c.Now)), open(t, dir, filestore.WithNow(c.Now))}
	if err := compared(c, 1).Disagreement(&rotating{handles: handles}); err != nil {
		t.Error(err)
	}
}

func TestModelNoticesPlantedFaults(t *testing.T) {
	for i := range compared(nil, 1).Faults() {
		s, c, _ := newStore(t)
		with := compared(c, 1)
		with.Operations = 2_000
		faulty := with.Faults()[i](s)
		if _, deaf := faulty.(storemodel.Deaf); deaf {
			with.Wakes = storemodel.Signalled // there is nothing to wait for
		}
		if with.Disagreement(faulty) == nil {
			t.Errorf("%T goes unnoticed", faulty)
		}
	}
}

// rotating sends each call to the next handle.
type rotating struct {
	handles []full
	calls   int
}

func (r *rotating) next() full { r.calls++; return r.handles[r.calls%len(r.handles)] }

func (r *rotating) Acquire(ctx context.Context, key string, ttl time.Duration) (lockfx.Grant, error) {
	return r.next().Acquire(ctx, key, ttl)
}

func (r *rotating) Renew(ctx context.Context, key string, token lockfx.Token, ttl time.Duration) (bool, error) {
	return r.next().Renew(ctx, key, token, ttl)
}

func (r *rotating) Release(ctx context.Context, key string, token lockfx.Token) (bool, error) {
	return r.next().Release(ctx, key, token)
}

func (r *rotating) Watch(ctx context.Context, key string) (<-chan struct{}, func(), error) {
	return r.next().Watch(ctx, key)
}

func (r *rotating) Inspect(ctx context.Context, key string) (lockfx.Lease, error) {
	return r.next().Inspect(ctx, key)
}

func (r *rotating) Break(ctx context.Context, key string) (bool, error) {
	return r.next().Break(ctx, key)
}
