package redisstore

import (
	"context"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/storekit"
)

var _ lockfx.Watcher = (*Store)(nil)

// Watch returns a channel that gets a signal whenever the key was freed, by its
// holder or by force, when its lease was shortened, and when the subscription was
// lost and made again. It returns once the server has confirmed the subscription.
//
// One connection serves all watches of the store. It is opened by the first and
// closed with the last. When it breaks it is made anew; if that does not succeed at
// once, or if the server does not allow this user to subscribe, the watch is lost:
// the channel is closed, and a further Watch is an error that matches
// [lockfx.ErrStore]. The way to wait is then to poll.
func (s *Store) Watch(ctx context.Context, key string) (<-chan struct{}, func(), error) {
	if err := storekit.Check(ctx, "watch", key, nil); err != nil {
		return nil, nil, err
	}
	freed, stop, err := s.watches.Watch(ctx, lockName(s.prefix, key))
	if err != nil {
		return nil, nil, storekit.Fault(ctx, "watch", key, err)
	}
	return freed, stop, nil
}
