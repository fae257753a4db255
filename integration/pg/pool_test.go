package pg_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
	"github.com/lockfx/lockfx/pgstore"
)

// poolOfOne sets a pool up as the README says: an attempt to connect that hangs has an end.
func poolOfOne(c *pgxpool.Config) {
	c.MaxConns = 1
	c.ConnConfig.ConnectTimeout = 2 * time.Second
}

// A watch takes its connection out of the pool, so that one connection is enough for
// the application and its locks.
func TestAPoolOfOneIsNotStarved(t *testing.T) {
	e := over(t, shared(t), poolOfOne)
	store := e.store(t)
	token := grants(t, store, "nightly", time.Hour)
	freed, stop, err := store.Watch(t.Context(), "nightly")
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	refuses(t, store, "nightly")
	if ok, err := store.Release(t.Context(), "nightly", token); !ok || err != nil {
		t.Fatal(ok, err)
	}
	<-freed
	grants(t, store, "nightly", time.Hour)
}

// With every connection in use a call waits as long as its context allows, and
// nothing has been sent.
func TestCase_A05_AnExhaustedPoolIsAnError(t *testing.T) {
	e := over(t, shared(t), poolOfOne)
	pool, store := opened(t, e)
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if g, err := store.Acquire(ctx, "nightly", time.Hour); g.OK || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%+v, %v; want the end of the context", g, err)
	}
	conn.Release()
	if rows := value[int64](e.direct(t), "SELECT count(*) FROM LEASES"); rows != 0 {
		t.Errorf("%d rows, want none", rows)
	}
	grants(t, store, "nightly", time.Hour)
}

// A closed pool is an outage too.
func TestCase_A05_AClosedPoolIsAnError(t *testing.T) {
	e := over(t, shared(t), nil)
	pool, store := opened(t, e)
	pool.Close()
	if g, err := store.Acquire(t.Context(), "nightly", time.Hour); g.OK || !errors.Is(err, lockfx.ErrStore) {
		t.Errorf("%+v, %v; want an error that matches lockfx.ErrStore", g, err)
	}
	if _, _, err := store.Watch(t.Context(), "nightly"); !errors.Is(err, lockfx.ErrStore) {
		t.Errorf("%v; want an error that matches lockfx.ErrStore", err)
	}
}

// exhausted takes every connection of a pool, as a body may.
func exhausted(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	for range pool.Config().MaxConns {
		conn, err := pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(conn.Release)
	}
}

// What keeps or ends a lease goes through, on one connection more. An acquisition waits
// for the pool, and says so.
func TestABodyThatTakesThePoolKeepsItsLease(t *testing.T) {
	e := over(t, shared(t), nil)
	pool, store := opened(t, e)
	lock, err := fxlock.New(fxlock.WithKey("nightly"), fxlock.WithTTL(2*time.Second), fxlock.WithStore(store))
	if err != nil {
		t.Fatal(err)
	}
	err = lock.Do(t.Context(), func(ctx context.Context, _ lockfx.Holder) error {
		exhausted(t, pool)
		asked, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		defer cancel()
		if g, err := store.Acquire(asked, "other", time.Minute); g.OK || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "4 are in use") {
			t.Errorf("%+v, %v; want the end of the context, and why", g, err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(3 * time.Second):
			return nil
		}
	})
	if err != nil {
		t.Errorf("%v; want to hold on", err)
	}
	if err := lock.Dispose(t.Context()); err != nil {
		t.Error(err)
	}
}

// With connections of its own the store does not meet the pool's other users at all.
func TestAStoreWithConnectionsOfItsOwn(t *testing.T) {
	e := over(t, shared(t), func(c *pgxpool.Config) {
		c.ConnConfig.RuntimeParams["application_name"] = t.Name()
	})
	pool, store := opened(t, e, pgstore.WithConnections(1))
	exhausted(t, pool)
	d := e.direct(t)
	connections := "count(*) FROM pg_stat_activity WHERE application_name = '" + t.Name() + "'"
	before := value[int64](d, "SELECT "+connections)
	for range 2 { // a closed store can be used again
		_, stop := watches(t, store, "nightly") // on a connection that it takes out of its pool
		everyOperation(t, store, quietly)
		d.until("$1 = "+connections, before+2)
		stop()
		if err := store.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		d.until("$1 = "+connections, before)
	}
}
