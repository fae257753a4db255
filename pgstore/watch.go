package pgstore

import (
	"context"
	"sync"

	"github.com/lockfx/lockfx"
)

var _ lockfx.Watcher = (*Store)(nil)

// Watch returns a channel that gets a signal whenever the key was freed, by its
// holder or by force, when its lease was shortened, and when the connection was lost
// and made again. It returns once the server has confirmed that it is listening.
//
// One connection serves all watches of the store. It is taken out of the pool by the
// first, which then may open another in its place, and closed with the last. When it
// breaks it is made anew; if that takes too long the watch is lost: the channel is
// closed. Where nothing can be heard, because a pooler stands in front of the server
// or because the pool handles notifications itself, Watch is an error that matches
// [lockfx.ErrStore]. The way to wait is then to poll.
func (s *Store) Watch(ctx context.Context, key string) (<-chan struct{}, func(), error) {
	if err := check(ctx, "watch", key, nil); err != nil {
		return nil, nil, err
	}
	w, err := s.hub.watch(key)
	if err != nil {
		return nil, nil, fault(ctx, "watch", key, err)
	}
	stop := sync.OnceFunc(func() { s.hub.unwatch(w) })
	select {
	case <-w.session.ready:
	case <-ctx.Done():
		stop()
		return nil, nil, ended(ctx, "watch", key)
	}
	if err := w.session.refusal; err != nil {
		stop()
		return nil, nil, fault(ctx, "watch", key, err)
	}
	return w.freed, stop, nil
}
