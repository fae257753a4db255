package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockfx/lockfx"
)

const (
	// discardWithin bounds the revoking of a lease.
	discardWithin = 10 * time.Second
	// undoGrace is how long an acquisition whose ctx is over waits for its undoing, so
	// that ordinarily the key is free again when it returns.
	undoGrace = 50 * time.Millisecond
	// soon is when to try again if the lease in the way has just ended.
	soon = 100 * time.Millisecond
	// endless is the time left of a key that was put by hand, without a lease.
	endless = 24 * time.Hour
)

// lease is a lease of etcd. It carries one key at most: a key that its holder has
// abandoned would live on for as long as a neighbour renews.
type lease struct {
	id      clientv3.LeaseID
	seconds int64     // its ttl
	since   time.Time // it lasts for at least its ttl from then on
	spoilt  bool      // a request of an earlier attempt may still be on its way with it
}

// grant asks for a lease under an id that no request had before. So a revoked lease
// never comes back, and what still arrives with its id is refused: revoking undoes
// all that was asked for with it.
func (s *Store) grant(ctx context.Context, seconds int64) (lease, error) {
	var unheard []clientv3.LeaseID
	l, _, err := persist(ctx, func(ctx context.Context) (lease, error) {
		l := lease{id: clientv3.LeaseID(1 + rand.Int64N(math.MaxInt64)), seconds: seconds, since: time.Now()}
		answer, err := s.leases.LeaseGrant(ctx, &pb.LeaseGrantRequest{ID: int64(l.id), TTL: seconds})
		if err == nil {
			l.seconds = answer.TTL
		} else if !errors.Is(rpctypes.Error(err), rpctypes.ErrLeaseExist) { // else it is somebody else's
			unheard = append(unheard, l.id)
		}
		return l, err
	})
	if unheard != nil {
		s.discard(ctx, unheard...)
	}
	switch {
	case err != nil:
		return lease{}, err
	case l.seconds < seconds:
		s.discard(ctx, l.id)
		return lease{}, fmt.Errorf("%w: a lease of %d s where %d s were asked for", lockfx.ErrBadGrant, l.seconds, seconds)
	case l.seconds > seconds:
		s.minimum.Store(l.seconds)
	}
	return l, nil
}

// discard revokes leases in the background, and with them the keys that they carry.
// What can't be revoked in time ends by itself.
func (s *Store) discard(ctx context.Context, ids ...clientv3.LeaseID) (done <-chan struct{}) {
	return s.tasks.Go(func() {
		ctx, cancel := s.bounded(context.WithoutCancel(ctx), discardWithin)
		defer cancel()
		for _, id := range ids {
			_, _, _ = persist(ctx, func(ctx context.Context) (*pb.LeaseRevokeResponse, error) {
				return s.leases.LeaseRevoke(ctx, &pb.LeaseRevokeRequest{ID: int64(id)})
			})
		}
	})
}

// undo revokes the lease of an acquisition, whether that was carried out or is still
// on its way. It returns when that is done, or after undoGrace.
func (s *Store) undo(ctx context.Context, id clientv3.LeaseID) {
	done := s.discard(ctx, id)
	grace := time.NewTimer(undoGrace)
	defer grace.Stop()
	select {
	case <-done:
	case <-grace.C:
	}
}

// kept is the answer to a request to keep a lease alive.
type kept struct {
	seconds int64     // the ttl that the lease was granted with
	asked   time.Time // the lease lasts for its ttl from then on, at least
	err     error     // rpctypes.ErrLeaseNotFound if the lease has ended
	doubt   bool      // a request was not answered, and may still arrive
}

func (s *Store) keepAlive(ctx context.Context, id clientv3.LeaseID, length func(context.Context) time.Duration) kept {
	k, doubt, err := within(ctx, length, func(ctx context.Context) (kept, error) {
		asked := time.Now()
		seconds, err := s.keeper.keep(ctx, id)
		return kept{seconds: seconds, asked: asked}, err
	})
	k.doubt = doubt || err != nil
	if err == nil && k.seconds <= 0 {
		err = rpctypes.ErrLeaseNotFound
	}
	k.err = err
	return k
}

func (s *Store) keepAliveMeanwhile(ctx context.Context, id clientv3.LeaseID, length func(context.Context) time.Duration) <-chan kept {
	answer := make(chan kept, 1)
	go func() { answer <- s.keepAlive(ctx, id, length) }()
	return answer
}

// timeLeft returns how long a lease can still last, or 0 if it has ended.
func (s *Store) timeLeft(ctx context.Context, id clientv3.LeaseID) (time.Duration, error) {
	if id == clientv3.NoLease {
		return endless, nil
	}
	answer, _, err := persist(ctx, func(ctx context.Context) (*pb.LeaseTimeToLiveResponse, error) {
		return s.leases.LeaseTimeToLive(ctx, &pb.LeaseTimeToLiveRequest{ID: int64(id)})
	})
	switch {
	case errors.Is(err, rpctypes.ErrLeaseNotFound):
		return 0, nil
	case err != nil:
		return 0, err
	case answer.TTL < 0:
		return 0, nil
	}
	const roundedDown = 1
	return time.Duration(min(answer.TTL+roundedDown, int64(longest/time.Second))) * time.Second, nil
}
