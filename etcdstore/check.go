package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockfx/lockfx"
)

const (
	// resolution is the shortest ttl: etcd counts leases in seconds.
	resolution = time.Second
	// longest is the longest ttl that etcd takes.
	longest = 9_000_000_000 * time.Second
)

// checkTTL returns nil if etcd can keep a lease of ttl.
func checkTTL(ttl time.Duration) error {
	if ttl > longest {
		return fmt.Errorf("%w: ttl %v is above etcd's limit of %v", lockfx.ErrConfig, ttl, longest)
	}
	return lockfx.CheckTTL(ttl, resolution)
}

// secondsOf rounds up, so that nobody takes a lease early.
func secondsOf(ttl time.Duration) int64 {
	return int64(ttl/time.Second) + min(1, int64(ttl%time.Second))
}

// check returns what stands against the call of op: the end of ctx, or all the
// faults of its arguments at once. ttlFault is nil for a call without a ttl.
func check(ctx context.Context, op, key string, ttlFault error) error {
	if ctx.Err() != nil {
		return ended(ctx, op, key)
	}
	keyFault := lockfx.CheckKey(key)
	switch {
	case keyFault != nil && ttlFault != nil:
		return fmt.Errorf("%s: %w; %w", op, keyFault, ttlFault)
	case keyFault != nil:
		return fmt.Errorf("%s: %w", op, keyFault)
	case ttlFault != nil:
		return fmt.Errorf("%s %q: %w", op, key, ttlFault)
	}
	return nil
}

// fault says that a call did not succeed: because its ctx is over, whatever else went
// wrong, or else because of etcd.
func fault(ctx context.Context, op, key string, err error) error {
	own := errors.Is(ctx.Err(), context.Canceled)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		err = errNoAnswer
	case errors.Is(err, context.Canceled) && !own:
		err = errClientClosed
	}
	switch {
	case own:
		return ended(ctx, op, key)
	case ctx.Err() != nil:
		return fmt.Errorf("%w (%v)", ended(ctx, op, key), err) //nolint:errorlint // the end of ctx is the reason
	case errors.Is(err, lockfx.ErrBadGrant):
		return fmt.Errorf("%s %q: %w", op, key, err)
	}
	return fmt.Errorf("%s %q: %w: %w", op, key, lockfx.ErrStore, err)
}

// ended says that ctx is over. The error matches both ctx.Err() and the cause.
func ended(ctx context.Context, op, key string) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return fmt.Errorf("%s %q: %w", op, key, cause)
	}
	return fmt.Errorf("%s %q: %w: %w", op, key, err, cause)
}
