package queue_test

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/lockfx/lockfx"
)

// observed is the store of one lock. It tells when the lock waits: when an attempt was
// refused although a watch had begun.
type observed struct {
	store
	watched atomic.Bool
	inLine  chan struct{} // of capacity 1
}

func observe(s store) *observed { return &observed{store: s, inLine: make(chan struct{}, 1)} }

func (o *observed) Watch(ctx context.Context, key string) (<-chan struct{}, func(), error) {
	freed, stop, err := o.store.Watch(ctx, key)
	if err == nil {
		o.watched.Store(true)
	}
	return freed, stop, err
}

func (o *observed) Acquire(ctx context.Context, key string, ttl time.Duration) (lockfx.Grant, error) {
	watched := o.watched.Load()
	g, err := o.store.Acquire(ctx, key, ttl)
	if watched && err == nil && !g.OK {
		select {
		case o.inLine <- struct{}{}:
		default:
		}
	}
	return g, err
}

// awaitLine returns once the lock waits.
func (o *observed) awaitLine(ctx context.Context) error {
	select {
	case <-o.inLine:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
