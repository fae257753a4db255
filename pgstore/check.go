package pgstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lockfx/lockfx"
)

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

// fault says that a call did not succeed: because its ctx is over, or else because
// of the store.
func fault(ctx context.Context, op, key string, err error) error {
	if ctx.Err() != nil {
		return ended(ctx, op, key)
	}
	if errors.Is(err, lockfx.ErrBadGrant) {
		return fmt.Errorf("%s %q: %w", op, key, err)
	}
	return fmt.Errorf("%s %q: %w: %w%s", op, key, lockfx.ErrStore, err, advice(err))
}

// ended says that ctx is over. The error matches both ctx.Err() and the cause.
func ended(ctx context.Context, op, key string) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return fmt.Errorf("%s %q: %w", op, key, cause)
	}
	return fmt.Errorf("%s %q: %w: %w", op, key, err, cause)
}

// advice says what to do about an error that the schema is to blame for.
func advice(err error) string {
	const undefinedTable, undefinedColumn, invalidSchema = "42P01", "42703", "3F000"
	var answer *pgconn.PgError
	if errors.As(err, &answer) {
		switch answer.Code {
		case undefinedTable, undefinedColumn, invalidSchema:
			return "; pgstore.Migrate makes the table, or run what pgstore.SchemaSQL returns"
		}
	}
	return ""
}
