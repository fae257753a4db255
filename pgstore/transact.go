package pgstore

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// The transaction of every statement. Under a stricter isolation level, which the
// role or the database may set as its default, the server answers contention with
// serialization failures.
const (
	begin       = "begin isolation level read committed read write"
	asyncCommit = "set local synchronous_commit to off"
	commit      = "commit"
)

// transact runs statements in one transaction, in one round trip: all is sent before
// anything is read. read gets the rows of the first, and may be called twice.
// unsettled says that the call did not succeed and that its outcome is unknown.
//
// It is sent in the mode that the pool is set to, with or without prepared
// statements: whoever configures the pool knows what stands in front of the server.
func (s *Store) transact(ctx context.Context, read func(pgx.Rows) error, args []any, stmt statement, also ...statement) (unsettled bool, err error) {
	for again := stmt.repeatable; ; again = false {
		broken, err := s.send(ctx, read, args, stmt, also)
		if err == nil {
			return false, nil
		}
		unsettled = unsettled || broken // pgconn.SafeToRetry may say true of a request that was sent
		if !broken || !again || ctx.Err() != nil {
			return unsettled, err
		}
	}
}

// send reports whether the connection broke. An error that leaves it open comes from
// the server and has aborted the transaction, or from before anything was sent.
func (s *Store) send(ctx context.Context, read func(pgx.Rows) error, args []any, stmt statement, also []statement) (broken bool, err error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return false, err
	}
	defer conn.Release() // it closes a connection whose transaction was aborted
	var b pgx.Batch
	b.Queue(begin).Exec(anyTag)
	if s.async {
		b.Queue(asyncCommit).Exec(anyTag)
	}
	b.Queue(stmt.sql, args...).Query(read)
	for _, a := range also {
		b.Queue(a.sql).Exec(anyTag)
	}
	b.Queue(commit).Exec(committed)
	err = conn.SendBatch(ctx, &b).Close()
	return err != nil && conn.Conn().IsClosed(), err
}

// anyTag makes the first error of a batch the one that is reported.
func anyTag(pgconn.CommandTag) error { return nil }

// committed refuses the answer ROLLBACK, which the server gives to the commit of an
// aborted transaction.
func committed(tag pgconn.CommandTag) error {
	if tag.String() != "COMMIT" {
		return errors.New("the transaction was not committed: " + tag.String())
	}
	return nil
}
