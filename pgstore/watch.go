package pgstore

import (
	"context"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/storekit"
)

var _ lockfx.Watcher = (*Store)(nil)

// Watch returns a channel that gets a signal whenever the key was freed, by its
// holder or by force, when its lease was shortened, and when the connection was lost
// and made again. It returns once the server listens, and knows that the key is watched:
// a key that nobody watches is freed without a notification.
//
// One connection serves all watches of the store. It is taken out of the pool by the
// first, which then may open another in its place, and closed with the last. When it
// breaks it is made anew; if that takes too long the watch is lost: the channel is
// closed. Where no notification can come, because a pooler stands in front of the server
// or because the pool handles notifications itself, Watch is an error that matches
// [lockfx.ErrStore]. The way to wait is then to poll.
func (s *Store) Watch(ctx context.Context, key string) (<-chan struct{}, func(), error) {
	if err := storekit.Check(ctx, "watch", key, nil); err != nil {
		return nil, nil, err
	}
	if never := s.cannotListen.Load(); never != nil {
		return nil, nil, fault(ctx, "watch", key, *never)
	}
	freed, stop, err := s.watches.Watch(ctx, key)
	if err != nil {
		return nil, nil, fault(ctx, "watch", key, err)
	}
	return freed, stop, nil
}
