package pgstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lockfx/lockfx/storekit"
)

// fault says why a call did not succeed, by the rule of all stores. To the end of ctx it
// adds what the last attempt came to.
func fault(ctx context.Context, op, key string, err error) error {
	judged := storekit.Fault(ctx, op, key, advised{err})
	if end := ctx.Err(); end != nil && !errors.Is(err, end) {
		return fmt.Errorf("%w (the last attempt: %v)", judged, err) //nolint:errorlint // it is not why the call ended
	}
	return judged
}

// advised is an error that says what to do if the schema is to blame.
type advised struct{ error }

func (a advised) Unwrap() error { return a.error }

func (a advised) Error() string {
	const undefinedTable, undefinedColumn, invalidSchema = "42P01", "42703", "3F000"
	switch sqlState(a.error) {
	case undefinedTable, undefinedColumn, invalidSchema:
		return a.error.Error() + "; pgstore.Migrate makes the table, or run what pgstore.SchemaSQL returns"
	}
	return a.error.Error()
}

// sqlState returns the code of the server's error, or "".
func sqlState(err error) string {
	var answer *pgconn.PgError
	if errors.As(err, &answer) {
		return answer.Code
	}
	return ""
}
