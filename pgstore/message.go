package pgstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lockfx/lockfx"
)

// Under a stricter isolation level, which the role or the database may set as its
// default, the server answers contention with serialization failures.
const (
	begin       = "begin isolation level read committed read write; "
	asyncCommit = "set local synchronous_commit to off; "
	commit      = "; commit"
)

// request is what one operation sends.
type request struct {
	statement
	args []any
	note string // a comment before it, for those who look at the server
	// read gets the rows of the answer, and may be called again with those of another.
	read  func(pgx.Rows) error
	sweep bool
}

// send executes a request on a connection: a transaction in one message, which the
// server does not begin to execute before it has it all. A host that dies on the way
// leaves no row locked.
func (s *Store) send(ctx context.Context, conn *pgx.Conn, r request) (err error) {
	sql, err := s.message(ctx, conn, r)
	if err != nil {
		return err
	}
	if s.tracer != nil {
		ctx = s.tracer.TraceQueryStart(ctx, conn, pgx.TraceQueryStartData{SQL: sql})
		defer func() { s.tracer.TraceQueryEnd(ctx, conn, pgx.TraceQueryEndData{Err: err}) }()
	}
	results := conn.PgConn().Exec(ctx, sql)
	if conn.IsClosed() {
		// Only now: of a connection that breaks later, pgconn says so too.
		if err := results.Close(); pgconn.SafeToRetry(err) {
			return unsentError{err}
		}
	}
	var malformed error
	committed := false
	for results.NextResult() {
		result := results.ResultReader()
		if len(result.FieldDescriptions()) > 0 {
			rows := pgx.RowsFromResultReader(conn.TypeMap(), result)
			malformed = r.read(rows)
			rows.Close()
			continue
		}
		tag, _ := result.Close() // results.Close returns the error too
		committed = committed || tag.String() == "COMMIT"
	}
	err = results.Close()
	switch {
	case committed: // what follows the commit, a sweep, decides nothing
	case err != nil:
		return err
	default: // the server answers the commit of an aborted transaction with ROLLBACK
		return errors.New("the transaction was not committed")
	}
	if malformed != nil {
		return fmt.Errorf("%w: %w", lockfx.ErrBadGrant, malformed)
	}
	return nil
}

// unsentError says that the server has executed nothing.
type unsentError struct{ error }

func (e unsentError) Unwrap() error { return e.error }

// message returns the text of a request. A pool that is set to prepared statements gets
// them.
func (s *Store) message(ctx context.Context, conn *pgx.Conn, r request) (string, error) {
	var b strings.Builder
	b.WriteString(r.note + begin)
	if r.async || s.async {
		b.WriteString(asyncCommit)
	}
	if s.inline.Load() {
		b.WriteString(r.inline(r.args))
	} else {
		if _, err := conn.Prepare(ctx, r.name, r.sql); err != nil {
			return "", unsentError{err}
		}
		b.WriteString(r.prepared(r.args))
	}
	b.WriteString(commit)
	if r.sweep {
		b.WriteString("; " + begin + s.stmt.sweep.sql + commit)
	}
	return b.String(), nil
}

// ignore reads nothing.
func ignore(pgx.Rows) error { return nil }
