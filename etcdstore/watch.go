package etcdstore

import (
	"context"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/storekit"
)

var _ lockfx.Watcher = (*Store)(nil)

// Watch returns a channel that gets a signal whenever the key was freed: by its
// holder, by force, or because its lease ended. So a lease that was shortened wakes
// at its end, and not before. Watch returns once etcd has confirmed it.
//
// One watch of etcd serves all watches of the store. It is opened by the first, from
// the present on, and ends with the last. When its connection breaks, the client goes
// on where it was. If etcd has no leader or has forgotten what happened meanwhile, or does
// not answer on it for 15 s, the watch is lost and the channel is closed.
func (s *Store) Watch(ctx context.Context, key string) (<-chan struct{}, func(), error) {
	if err := storekit.Check(ctx, "watch", key, nil); err != nil {
		return nil, nil, err
	}
	call, cancel := s.bounded(ctx, patience)
	defer cancel()
	name := nameOf(s.prefix, key)
	w, _, err := persist(call, func(ctx context.Context) (*watch, error) { return s.hub.settled(ctx, name) })
	if err != nil {
		return nil, nil, fault(ctx, "watch", key, err)
	}
	return w.freed, sync.OnceFunc(func() { s.hub.unwatch(w) }), nil
}

// watchEnds watches the ends of all records of the store.
func (s *Store) watchEnds(ctx context.Context) clientv3.WatchChan {
	return s.client.Watch(ctx, s.prefix, clientv3.WithPrefix(), clientv3.WithFilterPut(), clientv3.WithCreatedNotify())
}

func (s *Store) askProgress(ctx context.Context) error { return s.client.RequestProgress(ctx) }
