package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/storekit"
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

// fault says why a call did not succeed, in words of its own for what is not etcd's answer.
func fault(ctx context.Context, op, key string, err error) error {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		err = errNoAnswer
	case errors.Is(err, context.Canceled):
		err = errClientClosed // if it is not ctx that has ended, which comes first
	}
	return storekit.Fault(ctx, op, key, err)
}
