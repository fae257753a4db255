package etcdstore

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// patience bounds a call whose ctx has no earlier end. An election takes one to
	// two seconds with etcd's default settings.
	patience = 5 * time.Second
	// attemptWithin bounds one request, and so does a third of the time that is left to the
	// call, down to shortestAttempt: the next attempt may go over another connection.
	attemptWithin   = 2 * time.Second
	shortestAttempt = 100 * time.Millisecond
	// firstPause and longestPause are between the attempts of a call.
	firstPause   = 10 * time.Millisecond
	longestPause = 320 * time.Millisecond
)

var (
	errNoAnswer     = errors.New("no answer: a connection may be dead, and the client has no other one unless it is given several endpoints, or DialKeepAliveTime to notice it")
	errClientClosed = errors.New("the client was closed")
)

// untilDeadline bounds a renewal. Its ctx ends with the lease, and then it does: not before.
func untilDeadline(ctx context.Context) time.Duration {
	end, ok := ctx.Deadline()
	if !ok {
		return patience
	}
	return time.Until(end) + patience
}

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
	return within(ctx, share, send)
}

// within is persist with attempts of another length.
func within[T any](ctx context.Context, length func(context.Context) time.Duration, send func(context.Context) (T, error)) (answer T, doubt bool, err error) {
	for wait := firstPause; ; wait = min(2*wait, longestPause) {
		attempt, cancel := context.WithTimeout(ctx, length(ctx))
		answer, err = send(attempt)
		err = clientv3.ContextError(attempt, err)
		cancel()
		if err == nil || !passes(err) || !pause(ctx, wait) {
			return answer, doubt, err
		}
		doubt = true
	}
}

// share returns how long the next attempt of a call may take.
func share(ctx context.Context) time.Duration {
	end, ok := ctx.Deadline()
	if !ok {
		return attemptWithin
	}
	return min(attemptWithin, max(shortestAttempt, time.Until(end)/3))
}

// whole is the length of an attempt that fills the time which is left.
func whole(context.Context) time.Duration { return patience }

// passing are the answers of etcd that time heals.
var passing = []error{
	rpctypes.ErrNoLeader, rpctypes.ErrNotLeader, rpctypes.ErrLeaderChanged, rpctypes.ErrStopped, rpctypes.ErrTimeout,
	rpctypes.ErrTimeoutDueToLeaderFail, rpctypes.ErrTimeoutDueToConnectionLost, rpctypes.ErrTimeoutWaitAppliedIndex,
	rpctypes.ErrUnhealthy, rpctypes.ErrTooManyRequests,
	rpctypes.ErrLeaseExist, // the next attempt asks for another one
}

// passes reports whether a request that met err is worth another attempt. An error
// that is none of etcd's own comes from the connection, or says that a member which
// was asked as the leader is the leader no longer, or that a token is not good any more.
func passes(err error) bool {
	var answer rpctypes.EtcdError
	if errors.Is(err, errClosed) {
		return false
	}
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
