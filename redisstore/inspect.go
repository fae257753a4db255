package redisstore

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/storekit"
)

var (
	_ lockfx.Inspector = (*Store)(nil)
	_ lockfx.Breaker   = (*Store)(nil)
	_ lockfx.Closer    = (*Store)(nil)
)

// Inspect returns the unexpired lease on key, or the zero Lease. It is the one operation
// that a replica answers, which may be behind the primary.
func (s *Store) Inspect(ctx context.Context, key string) (lockfx.Lease, error) {
	if err := storekit.Check(ctx, "inspect", key, nil); err != nil {
		return lockfx.Lease{}, err
	}
	const anybody = ""
	return s.inspect(ctx, "inspect", key, anybody)
}

func (s *Store) inspect(ctx context.Context, op, key, whom string) (lockfx.Lease, error) {
	reply, err := s.eval(ctx, inspectScript, []string{lockName(s.prefix, key)}, whom)
	var lease lockfx.Lease
	if err == nil {
		lease, err = leaseOf(reply)
	}
	if err != nil {
		return lockfx.Lease{}, storekit.Fault(ctx, op, key, err)
	}
	return lease, nil
}

// Break frees the key whoever holds it, and reports whether there was an unexpired
// lease. The next token is greater than the broken one.
//
// It asks who holds the key and then frees that lease and no other, in two round trips: a
// request that arrives late does nothing to a later holder.
func (s *Store) Break(ctx context.Context, key string) (bool, error) {
	if err := storekit.Check(ctx, "break", key, nil); err != nil {
		return false, err
	}
	const primary = "1"
	for {
		lease, err := s.inspect(ctx, "break", key, primary)
		if err != nil || lease.Token == 0 {
			return false, err
		}
		if freed, err := s.free(ctx, "break", key, lease.Token); freed || err != nil {
			return freed, err
		}
	}
}

const (
	// traced is how long the server knows of a release that it has happened.
	traced = time.Minute
	// doubtful is how long a call may take whose answer is that nothing was freed: its
	// first request may have freed the lease before that.
	doubtful = traced / 2
)

// free ends the lease that carries token.
func (s *Store) free(ctx context.Context, op, key string, token lockfx.Token) (bool, error) {
	begun := time.Now()
	keys := []string{lockName(s.prefix, key), freedName(s.prefix, key)}
	reply, err := s.eval(ctx, releaseScript, keys, int64(token), traced.Milliseconds())
	untraced := redis.HasErrorPrefix(err, "TRYAGAIN")
	if untraced { // a cluster moves the slot, and a request that names two keys would have to wait
		reply, err = s.eval(ctx, releaseScript, keys[:1], int64(token))
	}
	var freed bool
	if err == nil {
		freed, err = doneOf(reply)
	}
	if err == nil && !freed && (untraced || time.Since(begun) > doubtful) {
		err = errors.New("the outcome is unknown: nothing was freed by the last request, but an earlier one may have done it")
	}
	if err != nil {
		return false, storekit.Fault(ctx, op, key, err)
	}
	return freed, nil
}

// Close ends the store's subscription, which closes the channels of those who still
// watch, and waits until nothing of the store is under way. It does not close the
// client. If ctx ends first, the error matches its cause. A closed store can be used
// again.
func (s *Store) Close(ctx context.Context) error {
	s.watches.Close()
	return s.tasks.Wait(ctx)
}
