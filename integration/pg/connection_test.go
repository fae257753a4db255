package pg_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
	"github.com/lockfx/lockfx/integration/pgserver"
	"github.com/lockfx/lockfx/pgstore"
)

// warm makes n connections of a pool, and leaves them idle.
func warm(t *testing.T, pool *pgxpool.Pool, n int) {
	t.Helper()
	var conns []*pgxpool.Conn
	for range n {
		conn, err := pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
	}
	for _, conn := range conns {
		conn.Release()
	}
}

// opened opens a pool and a store over it.
func opened(t *testing.T, e *engine, opts ...pgstore.Option) (*pgxpool.Pool, *pgstore.Store) {
	t.Helper()
	pool := bare(t, e)
	store, err := e.over(pool, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return pool, store
}

// Every connection of the pool carries nothing any more, as after a firewall forgot
// them, and the server is well. The pool tests a connection that was idle for a second,
// and has no answer either; one that has a single connection gives no other meanwhile, so
// there an acquisition waits.
func TestDeadConnectionsCostNoLease(t *testing.T) {
	ten := func(c *pgxpool.Config) { c.MaxConns = 10 }
	for name, c := range map[string]struct {
		tune func(*pgxpool.Config)
		idle time.Duration
		ops  string
	}{
		"ten used just now": {ten, 0, "acquire renew release"},
		"ten idle":          {ten, 1100 * time.Millisecond, "acquire renew release"},
		"one used just now": {poolOfOne, 0, "acquire renew release"},
		"one idle":          {poolOfOne, 1100 * time.Millisecond, "renew release"},
	} {
		for op := range strings.FieldsSeq(c.ops) {
			t.Run(name+" "+op, func(t *testing.T) {
				t.Parallel() // it mostly waits
				e := over(t, shared(t), c.tune)
				pool, store := opened(t, e)
				token := grants(t, store, "held", time.Minute)
				const limit = 8 * time.Second
				ctx, cancel := context.WithTimeout(t.Context(), c.idle+limit)
				defer cancel()
				call := map[string]func() (bool, error){
					"renew":   func() (bool, error) { return store.Renew(ctx, "held", token, time.Minute) },
					"release": func() (bool, error) { return store.Release(ctx, "held", token) },
					"acquire": func() (bool, error) {
						g, err := store.Acquire(ctx, "free", time.Minute)
						return g.OK, err
					},
				}[op]
				warm(t, pool, int(pool.Config().MaxConns))
				time.Sleep(c.idle)
				defer e.proxy.Hold()()
				begin := time.Now()
				if ok, err := call(); !ok || err != nil || time.Since(begin) > limit*3/4 {
					t.Errorf("%v, %v after %v; want true with time left", ok, err, time.Since(begin))
				}
			})
		}
	}
}

// The same for a lock that gives up at the first heartbeat that fails.
func TestADeadConnectionCostsAStrictHolderNothing(t *testing.T) {
	e := over(t, shared(t), nil)
	pool, store := opened(t, e)
	lock, err := fxlock.New(fxlock.WithKey("nightly"), fxlock.WithTTL(2*time.Second), fxlock.WithStore(store))
	if err != nil {
		t.Fatal(err)
	}
	err = lock.Do(t.Context(), func(ctx context.Context, _ lockfx.Holder) error {
		warm(t, pool, 2)
		defer e.proxy.Hold()()
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

func TestAWaiterOnADeadConnectionIsWokenWithinTenSeconds(t *testing.T) {
	t.Parallel() // it mostly waits
	e := over(t, shared(t), nil)
	pool, store := opened(t, e)
	other := over(t, e.server, nil)
	other.table = e.table
	token := grants(t, store, "nightly", time.Hour)
	freed, stop := watches(t, store, "nightly")
	defer stop()
	warm(t, pool, 3)
	defer e.proxy.Hold()()
	if ok, err := other.store(t).Release(t.Context(), "nightly", token); !ok || err != nil {
		t.Fatal(ok, err)
	}
	begin := time.Now()
	if !signal(t, freed) {
		t.Error("the watch is lost")
	}
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("woken after %v", took)
	}
}

// An administrator ended the connection before the request, of which nothing was
// executed. There is no other.
func TestATerminatedConnectionOfAPoolOfOneIsReplaced(t *testing.T) {
	e := over(t, shared(t), poolOfOne)
	pool, store := opened(t, e)
	d := e.direct(t)
	everyOperation(t, store, func(_ string, call func()) {
		var pid uint32
		if err := pool.QueryRow(t.Context(), "SELECT pg_backend_pid()").Scan(&pid); err != nil {
			t.Fatal(err)
		}
		d.exec("SELECT pg_terminate_backend($1)", pid)
		d.until("NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1)", pid)
		call()
	})
}

// replicated is a server with a standby, and a pool whose first connections lead to the
// standby: its name stood for it until a moment ago.
func replicated(t *testing.T, conns int) (e *engine, misled *atomic.Int64, pool *pgxpool.Pool) {
	t.Helper()
	primary := postgres(t)
	var standby *pgserver.Server
	misled = new(atomic.Int64)
	e = over(t, primary, func(c *pgxpool.Config) {
		c.MaxConns = int32(conns) //nolint:gosec // a handful
		c.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if misled.Add(-1) >= 0 {
				addr = standby.Addr()
			}
			return new(net.Dialer).DialContext(ctx, network, addr)
		}
	})
	standby, err := primary.Standby(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(standby.Stop)
	return e, misled, bare(t, e)
}

func TestConnectionsThatLeadToAStandbyAreReplaced(t *testing.T) {
	t.Parallel() // it mostly waits
	const conns = 3
	e, misled, pool := replicated(t, conns)
	store, err := e.over(pool)
	if err != nil {
		t.Fatal(err)
	}
	everyOperation(t, store, func(_ string, call func()) {
		pool.Reset()
		misled.Store(conns)
		warm(t, pool, conns)
		call()
	})
	pool.Reset()
	misled.Store(conns)
	warm(t, pool, conns)
	_, stop := watches(t, store, "nightly")
	stop()

	misled.Store(1 << 32)
	pool.Reset()
	if g, err := store.Acquire(t.Context(), "nightly", time.Minute); g.OK || !errors.Is(err, lockfx.ErrStore) || !strings.Contains(err.Error(), "recovery") {
		t.Errorf("%+v, %v; want an error with the server's words", g, err)
	}
}
