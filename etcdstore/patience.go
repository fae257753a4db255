package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// patience bounds a call whose ctx has no earlier end. An election takes one to
	// two seconds with etcd's default settings.
	patience = 5 * time.Second
	// attemptWithin bounds one request: the next attempt asks another member.
	attemptWithin = 2 * time.Second
	// firstPause and longestPause are between the attempts of a call.
	firstPause   = 10 * time.Millisecond
	longestPause = 320 * time.Millisecond
)

var (
	errNoAnswer     = fmt.Errorf("no answer within %v", patience)
	errClientClosed = errors.New("the client was closed")
)

// bounded returns the context of a call's requests. A member without a leader refuses
// them, instead of keeping them until it has one.
func (s *Store) bounded(ctx context.Context, within time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(clientv3.WithRequireLeader(ctx), within)
	forget := context.AfterFunc(s.client.Ctx(), cancel)
	return ctx, func() {
		forget()
		cancel()
	}
}

// persist sends a request until etcd answers it: while a leader is elected, a
// connection replaced or a member stuck, a request fails that will succeed a moment
// later. It gives up when ctx ends. doubt reports that an attempt before the last one
// was not answered, so it may have been carried out, or may still be.
func persist[T any](ctx context.Context, send func(context.Context) (T, error)) (answer T, doubt bool, err error) {
	for wait := firstPause; ; wait = min(2*wait, longestPause) {
		attempt, cancel := context.WithTimeout(ctx, attemptWithin)
		answer, err = send(attempt)
		err = clientv3.ContextError(attempt, err)
		cancel()
		if err == nil || !passes(err) || !pause(ctx, wait) {
			return answer, doubt, err
		}
		doubt = true
	}
}

// passing are the answers of etcd that time heals.
var passing = []error{
	rpctypes.ErrNoLeader, rpctypes.ErrNotLeader, rpctypes.ErrLeaderChanged, rpctypes.ErrStopped, rpctypes.ErrTimeout,
	rpctypes.ErrTimeoutDueToLeaderFail, rpctypes.ErrTimeoutDueToConnectionLost, rpctypes.ErrTimeoutWaitAppliedIndex,
	rpctypes.ErrUnhealthy, rpctypes.ErrTooManyRequests,
	rpctypes.ErrLeaseExist, // the next attempt asks for another one
}

// passes reports whether a request that met err is worth another attempt. An error
// that is none of etcd's own comes from the connection, or says that a member which
// was asked as the leader is the leader no longer.
func passes(err error) bool {
	var answer rpctypes.EtcdError
	return !errors.As(err, &answer) || slices.ContainsFunc(passing, func(p error) bool { return errors.Is(err, p) })
}

// pause waits for d and reports whether ctx is still alive.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
