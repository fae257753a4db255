package redisstore

import (
	"context"
	"crypto/rand"

	"github.com/lockfx/lockfx"
)

var (
	_ lockfx.Inspector = (*Store)(nil)
	_ lockfx.Breaker   = (*Store)(nil)
	_ lockfx.Closer    = (*Store)(nil)
)

// Inspect returns the unexpired lease on key, or the zero Lease.
func (s *Store) Inspect(ctx context.Context, key string) (lockfx.Lease, error) {
	if err := check(ctx, "inspect", key, nil); err != nil {
		return lockfx.Lease{}, err
	}
	reply, err := s.eval(ctx, inspectScript, []string{lockName(s.prefix, key)})
	var lease lockfx.Lease
	if err == nil {
		lease, err = leaseOf(reply)
	}
	if err != nil {
		return lockfx.Lease{}, fault(ctx, "inspect", key, err)
	}
	return lease, nil
}

// Break frees the key whoever holds it, and reports whether there was an unexpired
// lease. The next token is greater than the broken one.
func (s *Store) Break(ctx context.Context, key string) (bool, error) {
	if err := check(ctx, "break", key, nil); err != nil {
		return false, err
	}
	const anyToken = ""
	return s.done(ctx, "break", key, releaseScript, anyToken, rand.Text())
}

// Close ends the store's subscription, which closes the channels of those who still
// watch, and waits until nothing of the store is under way. It does not close the
// client. If ctx ends first, the error matches its cause. A closed store can be used
// again.
func (s *Store) Close(ctx context.Context) error {
	s.hub.close()
	return s.tasks.wait(ctx)
}
