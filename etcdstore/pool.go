package etcdstore

import (
	"context"
	"slices"
	"sync"
	"time"
)

// pool has leases that carry no key and are in nobody's hands, all of one ttl: that
// of the latest acquisition. One lease that came back is always worth keeping: who was
// refused will ask again.
type pool struct {
	ahead  int        // how many are granted before they are needed
	filler sync.Mutex // held by the one who fills

	mu      sync.Mutex // guards what follows
	seconds int64      // the ttl; 0 while the store is closed
	ready   []lease
}

// take returns a lease of the ttl. unfit are those of another ttl.
func (p *pool) take(seconds int64) (l lease, ok bool, unfit []lease) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seconds != seconds {
		unfit, p.ready, p.seconds = p.ready, nil, seconds
	}
	p.prune()
	n := len(p.ready)
	if n == 0 {
		return lease{}, false, unfit
	}
	l, p.ready = p.ready[n-1], p.ready[:n-1]
	return l, true, unfit
}

// put takes a lease in, and reports whether it did.
func (p *pool) put(l lease) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.prune()
	if p.seconds != l.seconds || len(p.ready) >= max(1, p.ahead) || l.spoilt || l.old() {
		return false
	}
	p.ready = append(p.ready, l)
	return true
}

// short reports whether more leases of the ttl should be granted ahead.
func (p *pool) short(seconds int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seconds == seconds && len(p.ready) < p.ahead
}

// close empties the pool.
func (p *pool) close() []lease {
	p.mu.Lock()
	defer p.mu.Unlock()
	rest := p.ready
	p.ready, p.seconds = nil, 0
	return rest
}

// prune leaves old leases to their end. p.mu is held.
func (p *pool) prune() { p.ready = slices.DeleteFunc(p.ready, lease.old) }

// old says that the lease may end before a request to keep it alive arrives.
func (l lease) old() bool {
	ttl := time.Duration(l.seconds) * time.Second
	return time.Since(l.since) >= ttl-min(time.Second, ttl/2)
}

// ready takes a lease from the pool. It fills an empty one in the background.
func (s *Store) ready(seconds int64) (lease, bool) {
	seconds = max(seconds, s.minimum.Load())
	l, ok, unfit := s.pool.take(seconds)
	s.discardAll(unfit)
	if !ok && s.pool.ahead > 0 && s.pool.filler.TryLock() {
		s.tasks.Go(func() {
			defer s.pool.filler.Unlock()
			s.fill(seconds)
		})
	}
	return l, ok
}

// fill grants leases until the pool is full or etcd does not answer.
func (s *Store) fill(seconds int64) {
	for s.pool.short(seconds) {
		ctx, cancel := s.bounded(context.Background(), patience)
		l, err := s.grant(ctx, seconds)
		cancel()
		if err != nil {
			return // whoever needs a lease next will be told
		}
		if !s.pool.put(l) {
			s.discard(context.Background(), l.id)
			return
		}
	}
}

// giveBack puts a lease that carries no key into the pool, or else revokes it.
func (s *Store) giveBack(ctx context.Context, l lease) {
	if !s.pool.put(l) {
		s.discard(ctx, l.id)
	}
}

func (s *Store) discardAll(leases []lease) {
	for _, l := range leases {
		s.discard(context.Background(), l.id)
	}
}
