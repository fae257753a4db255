package pgstore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// closeWithin bounds the farewell to a connection that nobody uses any more.
const closeWithin = 2 * time.Second

// spareIdle is how long the spare connection stays open when nothing needs it.
const spareIdle = time.Minute

// connections returns the pool for an attempt: the one that the store was given, or that
// of its own connections.
func (s *Store) connections(own bool) (*pgxpool.Pool, error) {
	if !own {
		return s.pool, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.own == nil {
		own, err := pgxpool.NewWithConfig(context.Background(), s.ownConfig)
		if err != nil {
			return nil, err
		}
		s.own = own
	}
	return s.own, nil
}

// ownPool makes config that of a pool of n connections of the same kind. 0 stands for
// one that is opened when the other pool has none to give.
func ownPool(config *pgxpool.Config, n int) *pgxpool.Config {
	if n == 0 {
		n, config.MaxConnIdleTime = 1, spareIdle
	}
	config.MaxConns = int32(n) //nolint:gosec // the option has checked it
	config.MinConns, config.MinIdleConns = 0, 0
	// An attempt has a bound, and a call another attempt: no need to ask first.
	config.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
	return config
}

// closeOwn closes the store's own connections. The next call opens others.
func (s *Store) closeOwn() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.own != nil {
		s.tasks.Go(s.own.Close)
		s.own = nil
	}
}

// drop takes a connection out of its pool, where another may be made in its place at
// once, and closes it.
func (s *Store) drop(pooled *pgxpool.Conn) {
	conn := pooled.Hijack()
	s.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
		defer cancel()
		_ = conn.Close(ctx) // it may have been lost
		select {
		case <-conn.PgConn().CleanupDone():
		case <-ctx.Done():
			_ = conn.PgConn().Conn().Close()
			<-conn.PgConn().CleanupDone()
		}
	})
}

// testIdle drops those idle connections of the pool that do not answer. What makes one
// connection silent, such as a firewall that forgot it, often does so to its neighbours.
func (s *Store) testIdle(pool *pgxpool.Pool, within time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	for _, conn := range pool.AcquireAllIdle(ctx) {
		s.tasks.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), within)
			defer cancel()
			if conn.Ping(ctx) != nil {
				s.drop(conn)
				return
			}
			conn.Release()
		})
	}
}
