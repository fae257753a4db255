package storekit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockfx/lockfx"
)

// Check returns what stands against the call of op, such as "acquire", before the engine
// is asked: the end of ctx, or else all the faults of its arguments at once, which match
// [lockfx.ErrConfig]. ttlFault is what the store's rule says of the ttl, usually
// [lockfx.CheckTTL], and nil for a call without one.
func Check(ctx context.Context, op, key string, ttlFault error) error {
	if ctx.Err() != nil {
		return Ended(ctx, op, key)
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

// Fault says why a call that reached the engine did not succeed. The rule, in this order:
//
//  1. The caller's own end: once ctx is over, that is what its caller hears. After a
//     deadline the words of err follow, since they say what took the time.
//  2. [lockfx.ErrConfig]: a rule of the store's that only the engine could check.
//  3. [lockfx.ErrBadGrant]: an answer that is none.
//  4. Anything else is [lockfx.ErrStore], with the engine's words.
//
// The result matches err as well, but in the first case.
func Fault(ctx context.Context, op, key string, err error) error {
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded) && err.Error() != context.Cause(ctx).Error():
		return fmt.Errorf("%w (%v)", Ended(ctx, op, key), err) //nolint:errorlint // the end of ctx is the reason
	case ctx.Err() != nil:
		return Ended(ctx, op, key)
	case errors.Is(err, lockfx.ErrConfig), errors.Is(err, lockfx.ErrBadGrant), errors.Is(err, lockfx.ErrStore):
		return fmt.Errorf("%s %q: %w", op, key, err)
	}
	return fmt.Errorf("%s %q: %w: %w", op, key, lockfx.ErrStore, err)
}

// Ended says that ctx, which is over, has ended the call. The error matches both ctx.Err()
// and the cause.
func Ended(ctx context.Context, op, key string) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return fmt.Errorf("%s %q: %w", op, key, cause)
	}
	return fmt.Errorf("%s %q: %w: %w", op, key, err, cause)
}

// Micros returns d in microseconds, rounded up: a lease must not end early.
func Micros(d time.Duration) int64 {
	micros := d.Microseconds()
	if time.Duration(micros)*time.Microsecond < d {
		micros++
	}
	return micros
}
