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

// fault says that the call of op did not succeed: because ctx is over, whatever else
// went wrong, or else because of the directory.
func fault(ctx context.Context, op, key string, err error) error {
	switch end := ended(ctx); {
	case end == nil:
		return fmt.Errorf("%s %q: %w: %w", op, key, lockfx.ErrStore, err)
	case errors.Is(err, ctx.Err()):
		return fmt.Errorf("%s %q: %w", op, key, err)
	default:
		return fmt.Errorf("%s %q: %w (%v)", op, key, end, err) //nolint:errorlint // the end of ctx is the reason
	}
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
