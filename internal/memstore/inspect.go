package memstore

import (
	"context"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/storekit"
)

var (
	_ lockfx.Inspector = (*Store)(nil)
	_ lockfx.Breaker   = (*Store)(nil)
)

// Inspect returns the unexpired lease on key, or the zero Lease.
func (s *Store) Inspect(ctx context.Context, key string) (lockfx.Lease, error) {
	if err := storekit.Check(ctx, "inspect", key, nil); err != nil {
		return lockfx.Lease{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now, err := s.decide(ctx, "inspect", key)
	if err != nil {
		return lockfx.Lease{}, err
	}
	r, held := s.lease(key, now)
	if !held {
		return lockfx.Lease{}, nil
	}
	return lockfx.Lease{Token: r.token, Label: r.label, TimeLeft: r.expires.Sub(now)}, nil
}

// Break frees the key whoever holds it, and reports whether there was an unexpired
// lease. The next token is greater than the broken one.
func (s *Store) Break(ctx context.Context, key string) (bool, error) {
	if err := storekit.Check(ctx, "break", key, nil); err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now, err := s.decide(ctx, "break", key)
	if err != nil {
		return false, err
	}
	if _, held := s.lease(key, now); !held {
		return false, nil
	}
	s.free(key)
	return true, nil
}
