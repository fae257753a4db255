package filestore

import (
	"context"
	"errors"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/storekit"
)

var (
	_ lockfx.Inspector = (*Store)(nil)
	_ lockfx.Breaker   = (*Store)(nil)
)

// Inspect returns the unexpired lease on key, or the zero Lease. It writes nothing and
// waits for nobody.
func (s *Store) Inspect(ctx context.Context, key string) (lockfx.Lease, error) {
	if err := storekit.Check(ctx, "inspect", key, nil); err != nil {
		return lockfx.Lease{}, err
	}
	r, err := s.load(key)
	if err != nil {
		return lockfx.Lease{}, storekit.Fault(ctx, "inspect", key, err)
	}
	now := s.now()
	if !r.liveAt(now) {
		return lockfx.Lease{}, nil
	}
	return lockfx.Lease{Token: r.Token, Label: r.Label, TimeLeft: r.Ends.Sub(now)}, nil
}

// Break frees the key whoever holds it, and reports whether there was an unexpired
// lease. The next token is greater than the broken one.
//
// It also frees a key whose record is corrupt, which nothing else does: whatever lease
// was in it is gone, and the mark of the directory keeps the tokens rising.
func (s *Store) Break(ctx context.Context, key string) (broken bool, err error) {
	if err := storekit.Check(ctx, "break", key, nil); err != nil {
		return false, err
	}
	err = s.decide(ctx, "break", key, func(now time.Time) error {
		r, err := s.load(key)
		switch {
		case errors.Is(err, ErrCorrupt):
			m, markErr := s.lastMark(now)
			if markErr != nil {
				return errors.Join(err, markErr)
			}
			r = record{Key: key, Token: m.Token}
		case err != nil || !r.liveAt(now):
			return err
		}
		_, err = s.save(r.freed(now))
		broken = err == nil
		return err
	})
	return broken, err
}
