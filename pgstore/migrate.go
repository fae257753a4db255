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
// migrations themselves. They change nothing where it exists as they make it. The error
// is that of [New].
func SchemaSQL(opts ...Option) (string, error) {
	set, err := settle(opts)
	if err != nil {
		return "", err
	}
	return set.schemaSQL(), nil
}

func (n names) schemaSQL() string { return n.createSchema() + n.tableSQL() }

func (n names) createSchema() string {
	if n.schema == defaultSchema {
		return ""
	}
	return "CREATE SCHEMA IF NOT EXISTS " + pgx.Identifier{n.schema}.Sanitize() + ";\n\n"
}

func (n names) tableSQL() string { return n.read("schema") + "\n" + n.read("upgrade") }

// Migrate makes the table unless it exists, brings one of an earlier version up to date,
// which keeps its leases and tokens, and checks that it has the columns, and the role the
// rights, that the store needs. It may run in many processes at once. Where there is
// nothing to change, the right to change it is not needed.
//
// Without [WithSchema], a table of version 0.1.0 in another schema than public, where the
// search_path has led to it, is an error that matches [lockfx.ErrConfig]: one that is made
// in public beside it would exclude nobody.
func Migrate(ctx context.Context, db DB, opts ...Option) error {
	set, err := settle(opts)
	if err != nil {
		return err
	}
	switch err := set.migrate(ctx, db); {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("pgstore: migrate: %w", context.Cause(ctx))
	case errors.Is(err, lockfx.ErrConfig):
		return fmt.Errorf("pgstore: migrate: %w", err)
	default:
		return fmt.Errorf("pgstore: migrate: %w: %w", lockfx.ErrStore, err)
	}
}

func (s settings) migrate(ctx context.Context, db DB) error {
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
	if err := s.update(ctx, tx); err != nil {
		return err
	}
	if err := s.complete(ctx, tx); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// update makes the table, or alters that of an earlier version.
func (s settings) update(ctx context.Context, tx pgx.Tx) error {
	if !s.schemaGiven {
		if err := s.strayed(ctx, tx); err != nil {
			return err
		}
	}
	var schema, table, old bool
	err := tx.QueryRow(ctx, "SELECT to_regnamespace($1) IS NOT NULL, to_regclass($2) IS NOT NULL, "+isOld("to_regclass($2)"),
		pgx.Identifier{s.schema}.Sanitize(), s.leases()).Scan(&schema, &table, &old)
	if err != nil || table && !old {
		return err
	}
	sql := s.tableSQL()
	if !schema {
		sql = s.createSchema() + sql
	}
	_, err = tx.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol)
	return err
}

// isOld is SQL for whether a table is one of version 0.1.0.
func isOld(table string) string {
	return "EXISTS (SELECT FROM pg_attribute WHERE attrelid = " + table + " AND attname = 'undone' AND NOT attisdropped)"
}

// strayed returns an error if a search_path leads to a table of version 0.1.0, which had
// no schema by default, that is not where this version looks.
func (s settings) strayed(ctx context.Context, tx pgx.Tx) error {
	var strayed bool
	var schema *string
	err := tx.QueryRow(ctx, `SELECT found IS NOT NULL AND found IS DISTINCT FROM to_regclass($2) AND `+isOld("found")+`,
			(SELECT relnamespace::regnamespace::text FROM pg_class WHERE oid = found)
		FROM to_regclass($1) AS found`, pgx.Identifier{s.table}.Sanitize(), s.leases()).Scan(&strayed, &schema)
	if err != nil || !strayed {
		return err
	}
	return fmt.Errorf("%w: version 0.1.0 kept the leases of this role in the schema %s, and this one keeps them in %s. If other roles use that table too, say pgstore.WithSchema in all; else move it there: ALTER TABLE %[2]s.%[4]s SET SCHEMA %[3]s",
		lockfx.ErrConfig, *schema, s.schema, pgx.Identifier{s.table}.Sanitize())
}

// complete returns an error if the table lacks a column, or the role a right.
func (s settings) complete(ctx context.Context, tx pgx.Tx) error {
	var role, missing string
	err := tx.QueryRow(ctx, `SELECT current_user::text, coalesce(string_agg(privilege, ', '), '')
		FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS privilege WHERE NOT has_table_privilege($1::text, privilege)`,
		s.leases()).Scan(&role, &missing)
	if err == nil && missing != "" {
		err = fmt.Errorf("the role %q must not %s: GRANT %[2]s ON %s TO %s", role, missing, s.leases(), pgx.Identifier{role}.Sanitize())
	}
	if err == nil {
		_, err = tx.Exec(ctx, "SELECT key, token, client, request, label, expires, watched, tombstones, forget_at FROM "+s.leases()+" LIMIT 0")
	}
	return err
}
