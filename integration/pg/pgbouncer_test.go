package pg_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/integration/pgserver"
	"github.com/lockfx/lockfx/storetest"
)

// pgbouncer starts a pooler in transaction mode in front of a server for one test.
func pgbouncer(t *testing.T, s *pgserver.Server) *pgserver.PgBouncer {
	t.Helper()
	b, err := pgserver.StartPgBouncer(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Stop)
	return b
}

// unprepared sets a pool up as every pool in front of such a pooler has to be. A
// request is then sent whole at the first time too.
func unprepared(c *pgxpool.Config) { c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec }

// polled is a store without its watcher.
type polled struct {
	lockfx.Store
	lockfx.Inspector
	lockfx.Breaker
	lockfx.ManyRenewer
	lockfx.Closer
}

func TestKitBehindPgBouncer(t *testing.T) {
	t.Parallel()
	s := postgres(t)
	b := pgbouncer(t, s)
	storetest.Run(t, func() (*storetest.Harness, error) {
		e, err := enter(s, b.Addr(), unprepared)
		if err != nil {
			return nil, err
		}
		h, err := e.harness()
		if err != nil {
			return nil, err
		}
		store := h.Store.(interface {
			lockfx.Inspector
			lockfx.Breaker
			lockfx.ManyRenewer
			lockfx.Closer
		})
		h.Store = polled{h.Store, store, store, store, store}
		h.Restart = nil // the pooler remembers the old connections; see TestKit
		return h, nil
	})
}

func TestEveryOperationBehindPgBouncer(t *testing.T) {
	s := shared(t)
	b := pgbouncer(t, s)
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) {
			e, err := enter(s, b.Addr(), func(c *pgxpool.Config) { c.ConnConfig.DefaultQueryExecMode = mode })
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(e.close)
			for range 3 {
				pool, store := opened(t, e)
				for range 3 {
					warm(t, pool, 3) // another connection may be next
					everyOperation(t, store, quietly)
				}
			}
		})
	}
}

// A LISTEN would succeed there and hear nothing. So Watch says that it can't, without
// asking again for every waiter.
func TestWatchRefusesAPooler(t *testing.T) {
	s := shared(t)
	b := pgbouncer(t, s)
	var c trips
	e, err := enter(s, b.Addr(), func(config *pgxpool.Config) {
		unprepared(config)
		c.tune(config)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.close)
	store := e.store(t)
	refusal := func() {
		t.Helper()
		_, _, err := store.Watch(t.Context(), "nightly")
		if !errors.Is(err, lockfx.ErrStore) || !strings.Contains(err.Error(), "a pooler stands in front of the server") {
			t.Errorf("%v; want an error that matches lockfx.ErrStore and names the pooler", err)
		}
	}
	refusal()
	if n := c.of(refusal); n != 0 {
		t.Errorf("the second refusal took %d round trips, want none", n)
	}
	if err := store.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := c.of(refusal); n == 0 {
		t.Error("a store that is used again did not ask again")
	}
}

// Whoever handles notifications of the pool would take ours away.
func TestWatchRefusesAPoolThatHandlesNotifications(t *testing.T) {
	e := over(t, shared(t), func(c *pgxpool.Config) {
		c.ConnConfig.OnNotification = func(*pgconn.PgConn, *pgconn.Notification) {}
	})
	if _, _, err := e.store(t).Watch(t.Context(), "nightly"); !errors.Is(err, lockfx.ErrStore) || !strings.Contains(err.Error(), "OnNotification") {
		t.Errorf("%v; want an error that names OnNotification", err)
	}
}
