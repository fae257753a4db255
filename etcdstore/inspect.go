package etcdstore

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/storekit"
)

var (
	_ lockfx.Inspector = (*Store)(nil)
	_ lockfx.Breaker   = (*Store)(nil)
	_ lockfx.Closer    = (*Store)(nil)
)

// Inspect returns the lease on key, or the zero Lease if the key is free. The time
// left is rounded up to a whole second.
func (s *Store) Inspect(ctx context.Context, key string) (lockfx.Lease, error) {
	if err := storekit.Check(ctx, "inspect", key, nil); err != nil {
		return lockfx.Lease{}, err
	}
	call, cancel := s.bounded(ctx, patience)
	defer cancel()
	lease, err := s.inspect(call, nameOf(s.prefix, key))
	if err != nil {
		return lockfx.Lease{}, fault(ctx, "inspect", key, err)
	}
	return lease, nil
}

func (s *Store) inspect(ctx context.Context, name string) (lockfx.Lease, error) {
	record, err := s.get(ctx, name)
	if err != nil || record == nil {
		return lockfx.Lease{}, err
	}
	left, err := s.timeLeft(ctx, clientv3.LeaseID(record.Lease))
	if err != nil || left == 0 {
		return lockfx.Lease{}, err
	}
	return lockfx.Lease{Token: lockfx.Token(record.CreateRevision), Label: string(record.Value), TimeLeft: left}, nil
}

// Break frees the key whoever holds it, and reports whether it was held. It looks first
// and then frees what it saw, so that one which arrives late frees no later lease. The
// next token is greater than the broken one. It is an error in the same case as of
// [Store.Release].
func (s *Store) Break(ctx context.Context, key string) (bool, error) {
	if err := storekit.Check(ctx, "break", key, nil); err != nil {
		return false, err
	}
	call, cancel := s.bounded(ctx, patience)
	defer cancel()
	broken, err := s.breakHold(call, nameOf(s.prefix, key))
	if err != nil {
		return false, fault(ctx, "break", key, err)
	}
	return broken, nil
}

func (s *Store) breakHold(ctx context.Context, name string) (bool, error) {
	record, err := s.get(ctx, name)
	if err != nil || record == nil {
		return false, err
	}
	id, _, err := s.free(ctx, hold{name, lockfx.Token(record.CreateRevision)})
	if err != nil || id == none {
		return false, err
	}
	s.discard(ctx, id)
	return true, nil
}

// Close ends the store's streams, which closes the channels of those who still watch,
// gives back the leases that it kept, and waits until nothing of the store is under
// way. It does not close the client, and leaves held keys alone. If ctx ends first,
// the error matches its cause. A closed store can be used again.
func (s *Store) Close(ctx context.Context) error {
	s.hub.close()
	s.keeper.close()
	s.discardAll(s.pool.close())
	return s.tasks.Wait(ctx)
}
