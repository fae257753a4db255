package pgstore

import (
	"context"
	"slices"
	"time"

	"github.com/lockfx/lockfx/storekit"
)

// marks are the keys of which the server knows that they are watched: whatever frees a
// key that nobody watches notifies nobody.
type marks struct {
	source   *storekit.Source
	listener listener
	known    map[string]bool
	renewed  time.Time
}

// add marks the keys that are watched now and were not, and confirms all.
func (m *marks) add(ctx context.Context) error {
	keys := m.source.Names()
	added := slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return m.known[key] })
	if len(added) > 0 {
		if _, err := m.listener.mark(ctx, added); err != nil {
			return err
		}
	}
	for _, key := range keys {
		m.known[key] = true
		m.source.Confirm(key)
	}
	return nil
}

// renew marks all keys that are watched again, before the server forgets it, and drops
// the others. Where it had forgotten, since this process stood still, a notification may
// be missing.
func (m *marks) renew(ctx context.Context) error {
	keys := m.source.Names()
	m.renewed = time.Now()
	if len(keys) > 0 {
		missed, err := m.listener.mark(ctx, keys)
		if err != nil {
			return err
		}
		for _, key := range missed {
			if m.known[key] {
				m.source.Wake(key)
			}
		}
	}
	m.known = make(map[string]bool, len(keys))
	for _, key := range keys {
		m.known[key] = true
		m.source.Confirm(key)
	}
	return nil
}
