package filestore

import (
	"context"
	"errors"
	"fmt"

	"github.com/lockfx/lockfx"
)

// check returns what stands against the call of op: the end of ctx, or all the
// faults of its arguments at once. ttlFault is nil for a call without a ttl.
func check(ctx context.Context, op, key string, ttlFault error) error {
	if err := ended(ctx); err != nil {
		return fmt.Errorf("%s %q: %w", op, key, err)
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

// fault says that the call of op did not succeed: because ctx is over, or else because of
// the directory.
func fault(ctx context.Context, op, key string, err error) error {
	over := ctx.Err() != nil && errors.Is(err, ctx.Err())
	if over || errors.Is(err, lockfx.ErrStore) {
		return fmt.Errorf("%s %q: %w", op, key, err)
	}
	return fmt.Errorf("%s %q: %w: %w", op, key, lockfx.ErrStore, err)
}

// ended returns nil while ctx is alive. Otherwise the error matches both ctx.Err()
// and the cause.
func ended(ctx context.Context) error {
	err := ctx.Err()
	if err == nil {
		return nil
	}
	cause := context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}
