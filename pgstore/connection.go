package pgstore

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// connection is a listener on a connection to the server.
type connection struct {
	*pgx.Conn
	store *Store
}

// open takes a connection out of the pool, which it does not go back to, and listens on
// it.
func (s *Store) open(ctx context.Context) (listener, error) {
	if s.pool.Config().ConnConfig.OnNotification != nil {
		return nil, cannotListenError{"the pool already has an OnNotification"}
	}
	ctx, cancel := context.WithTimeout(ctx, openWithin)
	defer cancel()
	var c connection
	_, err := s.onConnection(ctx, s.stmt.watch, func(ctx context.Context, pooled *pgxpool.Conn) error {
		c = connection{pooled.Conn(), s}
		err := c.start(ctx)
		if err == nil {
			pooled.Hijack()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (c connection) start(ctx context.Context) error {
	// A pooler answers with a process id of its own making. Behind it a LISTEN would
	// succeed, on a connection that others use next, and nothing would come of it.
	var pid uint32
	if err := c.QueryRow(ctx, "SELECT pg_backend_pid()", pgx.QueryExecModeSimpleProtocol).Scan(&pid); err != nil {
		return err
	}
	if pid != c.PgConn().PID() {
		return cannotListenError{"a pooler stands in front of the server"}
	}
	_, err := c.Exec(ctx, c.note()+"LISTEN "+pgx.Identifier{c.store.channel}.Sanitize(), pgx.QueryExecModeSimpleProtocol)
	return err
}

// note says what the connection is for. All that it sends begins with it, so that
// pg_stat_activity shows who waits.
func (c connection) note() string { return "-- lockfx waits on " + text(c.store.channel) + "\n" }

func (c connection) mark(ctx context.Context, keys []string) (missed []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, testWithin)
	defer cancel()
	err = c.store.send(ctx, c.Conn, request{
		statement: c.store.stmt.watch,
		args:      []any{keys, watchedFor.Microseconds(), c.store.memory},
		note:      c.note(),
		read: func(rows pgx.Rows) (err error) {
			missed, err = pgx.CollectRows(rows, pgx.RowTo[string])
			return err
		},
	})
	return missed, err
}

func (c connection) next(ctx context.Context, changes <-chan struct{}) (key string, changed bool, err error) {
	wait, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	interrupted := make(chan bool, 1)
	go func() {
		select {
		case <-changes:
			cancel()
			interrupted <- true
		case <-wait.Done():
			interrupted <- false
		}
	}()
	notification, err := c.WaitForNotification(wait)
	cancel()
	changed = <-interrupted
	switch {
	case err == nil:
		return notification.Payload, changed, nil
	case ctx.Err() == nil && !c.IsClosed(): // the end of wait leaves the connection as it is
		return "", changed, nil
	}
	return "", changed, err
}

func (c connection) test(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, testWithin)
	defer cancel()
	_, err := c.Exec(ctx, c.note(), pgx.QueryExecModeSimpleProtocol)
	return err
}

func (c connection) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	_ = c.Close(ctx) // it may have been lost
}
