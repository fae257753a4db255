package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/zap"

	"github.com/lockfx/lockfx"
)

// Migrated says that the schema is as it should be: what takes one starts after migrate.
type Migrated struct{}

const schema = `
	CREATE TABLE IF NOT EXISTS orders (id bigserial PRIMARY KEY, amount bigint NOT NULL, dispatched boolean NOT NULL DEFAULT false);
	CREATE TABLE IF NOT EXISTS report (id int PRIMARY KEY, total bigint NOT NULL, fence bigint NOT NULL);
	INSERT INTO report VALUES (1, 0, 0) ON CONFLICT DO NOTHING`

func migrate(ctx context.Context, pool *pgxpool.Pool) error {
	_, err := pool.Exec(ctx, schema)
	return err
}

// dispatch is the work of the leader, until its term ends.
func dispatch(ctx context.Context, fence lockfx.Token, pool *pgxpool.Pool, log *zap.Logger) error {
	for {
		done, err := pool.Exec(ctx, `UPDATE orders SET dispatched = true WHERE NOT dispatched`)
		if err != nil {
			return fmt.Errorf("dispatch orders: %w", err)
		}
		if n := done.RowsAffected(); n > 0 {
			log.Info("orders dispatched", zap.Int64("orders", n), zap.Stringer("fence", fence))
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Nightly writes the report, on one replica at a time.
type Nightly func(context.Context) error

// writeReport compares the token in the statement that writes: a replica that was suspended
// past its lease changes nothing any more.
func writeReport(ctx context.Context, fence lockfx.Token, pool *pgxpool.Pool) error {
	done, err := pool.Exec(ctx, `UPDATE report SET total = (SELECT coalesce(sum(amount), 0) FROM orders), fence = $1
		WHERE id = 1 AND fence <= $1`, int64(fence))
	if err == nil && done.RowsAffected() == 0 {
		err = lockfx.ErrStaleToken
	}
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}
