package pgstore

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// connection is the ear that PostgreSQL offers.
type connection struct{ *pgx.Conn }

// listen takes a connection out of the pool, which it does not go back to, and
// listens on it.
func (s *Store) listen(ctx context.Context) (ear, error) {
	if s.pool.Config().ConnConfig.OnNotification != nil {
		return nil, deafError{"the pool already has an OnNotification"}
	}
	pooled, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	c := connection{pooled.Hijack()}
	if err := c.start(ctx, s.channel); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (c connection) start(ctx context.Context, channel string) error {
	// A pooler answers with a process id of its own making. Behind it a LISTEN would
	// succeed, on a connection that others use next, and nothing would come of it.
	var pid uint32
	if err := c.QueryRow(ctx, "SELECT pg_backend_pid()", pgx.QueryExecModeSimpleProtocol).Scan(&pid); err != nil {
		return err
	}
	if pid != c.PgConn().PID() {
		return deafError{"a pooler stands in front of the server"}
	}
	_, err := c.Exec(ctx, "LISTEN "+pgx.Identifier{channel}.Sanitize(), pgx.QueryExecModeSimpleProtocol)
	return err
}

func (c connection) next(ctx context.Context) (string, error) {
	quiet, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	told, err := c.WaitForNotification(quiet)
	switch {
	case err == nil:
		return told.Payload, nil
	case quiet.Err() != nil && ctx.Err() == nil && !c.IsClosed():
		return "", errSilence
	}
	return "", err
}

func (c connection) test(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, testWithin)
	defer cancel()
	return c.Ping(ctx)
}

func (c connection) close() {
	ctx, cancel := context.WithTimeout(context.Background(), testWithin)
	defer cancel()
	_ = c.Close(ctx) // it may have been lost
}
