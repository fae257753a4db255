package pgstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// firstAttempt bounds the first attempt at a call; each further one has twice as
	// long.
	firstAttempt = 5 * time.Second
	// shortest is the shortest attempt worth making.
	shortest = 10 * time.Millisecond
)

// call makes a request, on another connection when the first is of no use, for as long
// as ctx allows. doubt says that an attempt whose outcome is unknown came before the
// last one, or is the last one if err is not nil.
func (s *Store) call(ctx context.Context, r request) (doubt bool, err error) {
	const queueIsFull = "54000"
	doubt, err = s.onConnection(ctx, r.statement, func(ctx context.Context, conn *pgxpool.Conn) error {
		err := s.send(ctx, conn.Conn(), r)
		if code := sqlState(err); code == unknownStatement || code == duplicateStatement {
			s.inline.Store(true) // a pooler stands in between, and has mixed up whose statements are whose
		}
		return err
	})
	if channel := len(r.args) - 1; r.notifies && sqlState(err) == queueIsFull && r.args[channel] != "" {
		r.args = slices.Clone(r.args)
		r.args[channel] = "" // who waits looks again by itself
		again, err := s.call(ctx, r)
		return doubt || again, err
	}
	return doubt, err
}

// onConnection calls do with a connection, and with another one when the first turns out
// to be of no use, if nothing was executed on it or the statement is repeatable.
func (s *Store) onConnection(ctx context.Context, stmt statement, do func(context.Context, *pgxpool.Conn) error) (doubt bool, err error) {
	spare, useless := false, 0
	for n := 0; ; n++ {
		pool, fault := s.connections(s.dedicated || spare)
		if fault != nil {
			return doubt, fault
		}
		bound := patience(ctx, n)
		f := s.attempt(ctx, pool, bound, do)
		if f.err == nil {
			return doubt, nil
		}
		doubt = doubt || f.doubt
		if err != nil && errors.Is(f.err, ctx.Err()) {
			return doubt, err // it says more than that ctx is over
		}
		err = f.err
		if !f.silent {
			useless++ // all connections of the pool may be, and then comes a new one
		}
		elsewhere := f.elsewhere || spare && f.starved
		if !elsewhere || f.doubt && !stmt.repeatable || useless > s.most+1 || ctx.Err() != nil {
			return doubt, err
		}
		if f.starved && stmt.keeps {
			spare = !spare
		}
		if f.silent {
			s.testIdle(pool, min(bound, time.Second))
		}
	}
}

// failure is what an attempt came to.
type failure struct {
	err       error // nil if it succeeded
	doubt     bool  // the server may have executed it all the same
	elsewhere bool  // it is worth another connection
	starved   bool  // it had none
	silent    bool  // nothing came back in time
}

// attempt calls do with one connection, for bound at most.
func (s *Store) attempt(ctx context.Context, pool *pgxpool.Pool, bound time.Duration, do func(context.Context, *pgxpool.Conn) error) failure {
	within, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	timedOut := func() bool { return within.Err() != nil && ctx.Err() == nil }
	conn, err := pool.Acquire(within)
	switch {
	case err != nil && timedOut():
		stat := pool.Stat()
		err = fmt.Errorf("no connection of the pool within %v, of whose %d connections %d are in use", bound, stat.MaxConns(), stat.AcquiredConns())
		return failure{err: err, elsewhere: true, starved: true, silent: true}
	case err != nil:
		return failure{err: err, starved: true}
	}
	raw := conn.Conn() // do may take it out of the pool
	err = do(within, conn)
	f := judge(err, raw.IsClosed())
	if f.err != nil && timedOut() {
		f = failure{err: fmt.Errorf("no answer within %v", bound), doubt: true, elsewhere: true, silent: true}
	}
	if f.elsewhere {
		s.drop(conn)
	} else {
		conn.Release() // it closes a connection whose transaction was aborted
	}
	return f
}

// patience returns how long attempt n may take. The attempts of a call get longer, so
// that a slow server is waited for, and leave some of its time for the next one.
func patience(ctx context.Context, n int) time.Duration {
	bound := firstAttempt << min(n, 16)
	deadline, ok := ctx.Deadline()
	if !ok {
		return bound
	}
	left := time.Until(deadline)
	share := left / 2
	if n == 0 {
		share = left / 4
	}
	if share < shortest {
		share = left
	}
	return min(bound, share)
}

// judge tells what an error says of the request, and of the connection.
func judge(err error, closed bool) failure {
	const connectionException, crashShutdown = "08", "57P02" // can be said after the fact, by poolers too
	code := sqlState(err)
	switch {
	case err == nil:
		return failure{}
	case errors.As(err, new(unsentError)):
		return failure{err: err, elsewhere: closed || slices.Contains(ofTheConnection, code)}
	case strings.HasPrefix(code, connectionException) || code == crashShutdown:
		return failure{err: err, elsewhere: true, doubt: true}
	case code != "": // the server has rolled back
		return failure{err: err, elsewhere: slices.Contains(ofTheConnection, code)}
	}
	return failure{err: err, elsewhere: closed, doubt: closed}
}

// What happens to prepared statements when a pooler does not keep connections apart.
const unknownStatement, duplicateStatement = "26000", "42P05"

// ofTheConnection are the errors that another connection may not give.
var ofTheConnection = []string{
	"25006", // read_only_sql_transaction: it leads to a standby
	"0A000", // feature_not_supported: how a standby refuses "read write"; or a plan of an altered table
	unknownStatement,
	duplicateStatement,
	"57P01", // admin_shutdown: it was terminated
	"57P03", // cannot_connect_now
	"57P05", // idle_session_timeout
	"25P03", // idle_in_transaction_session_timeout
}
