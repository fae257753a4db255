package pgstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/lockfx/lockfx"
)

// A DB begins transactions: a *pgxpool.Pool, a *pgx.Conn or a pgx.Tx.
type DB interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}

// SchemaSQL returns the statements that make the table, for those who run their
// migrations themselves. They change nothing where it exists. The error is that of
// [New].
func SchemaSQL(opts ...Option) (string, error) {
	set, faults := settle(opts)
	if err := configError(faults); err != nil {
		return "", err
	}
	return set.schemaSQL(), nil
}

func (n names) schemaSQL() string {
	var create string
	if n.schema != "" {
		create = "CREATE SCHEMA IF NOT EXISTS " + pgx.Identifier{n.schema}.Sanitize() + ";\n\n"
	}
	return create + n.read("schema")
}

// Migrate makes the table unless it exists, and checks that it has the columns that
// the store needs. It may run in many processes at once. Where the table exists, the
// right to create one is not needed.
func Migrate(ctx context.Context, db DB, opts ...Option) error {
	set, faults := settle(opts)
	if err := configError(faults); err != nil {
		return err
	}
	if err := set.migrate(ctx, db); err != nil {
		return fmt.Errorf("pgstore: migrate: %w: %w", lockfx.ErrStore, err)
	}
	return nil
}

func (n names) migrate(ctx context.Context, db DB) error {
	tx, err := db.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) //nolint:errcheck // after a commit there is nothing to roll back
	// One after another, and before anything is looked up: what a connection has
	// looked up, it remembers.
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtext('lockfx: migrate'))"); err != nil {
		return err
	}
	exists, err := n.exists(ctx, tx)
	if err != nil {
		return err
	}
	if !exists {
		if _, err := tx.Exec(ctx, n.schemaSQL(), pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
	}
	_, err = tx.Exec(ctx, "SELECT key, token, tag, label, expires, undone, forget_at FROM "+n.leases()+" LIMIT 0")
	return errors.Join(err, tx.Commit(ctx))
}

func (n names) exists(ctx context.Context, tx pgx.Tx) (exists bool, err error) {
	err = tx.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", n.leases()).Scan(&exists)
	return exists, err
}
