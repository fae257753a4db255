package memstore

import (
	"container/list"
	"context"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/storekit"
)

var _ lockfx.Watcher = (*Store)(nil)

// watchers is the list of the channels that watch one key. It is never empty.
type watchers struct{ *list.List }

// Watch returns a channel that gets a signal whenever the key was freed, by its
// holder or by force, and when its lease was shortened. The channel is never
// closed. stop ends the watch; it may be called more than once and by several
// goroutines at once, and must be called.
func (s *Store) Watch(ctx context.Context, key string) (<-chan struct{}, func(), error) {
	if err := storekit.Check(ctx, "watch", key, nil); err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	of, ok := s.watchers.entries[key]
	if !ok {
		of = watchers{list.New()}
		s.watchers.put(key, of)
	}
	freed := make(chan struct{}, 1)
	entry := of.PushBack(freed)
	return freed, func() { s.unwatch(key, of, entry) }, nil
}

// unwatch removes entry, and the list with its last one. A second call finds that
// entry belongs to no list, and that the list of the key may be another one.
func (s *Store) unwatch(key string, of watchers, entry *list.Element) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of.Remove(entry)
	if of.Len() > 0 || s.watchers.entries[key] != of {
		return
	}
	s.watchers.remove(key)
	if s.watchers.due() {
		s.watchers.compact(func(watchers) bool { return true })
	}
}

// wake signals all who watch key. A channel that is full already says the same.
// s.mu is held.
func (s *Store) wake(key string) {
	of, ok := s.watchers.entries[key]
	if !ok {
		return
	}
	for entry := of.Front(); entry != nil; entry = entry.Next() {
		select {
		case entry.Value.(chan struct{}) <- struct{}{}:
		default:
		}
	}
}
