package pg_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lockfx/lockfx"
)

// dying is a network on which the host of the client dies: of what it sends after arm, so
// many bytes arrive, and the connection stays open and carries nothing.
type dying struct {
	mu    sync.Mutex // guards what follows
	armed bool
	left  int        // bytes that still arrive
	dead  []net.Conn // on which something did not arrive
}

func (n *dying) arm(left int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.armed, n.left = true, left
}

// disarm closes the connections on which something did not arrive, and reports whether
// there are any.
func (n *dying) disarm() (some bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, conn := range n.dead {
		_ = conn.Close()
	}
	some = len(n.dead) > 0
	n.armed, n.dead = false, nil
	return some
}

// arrives returns what arrives of b.
func (n *dying) arrives(conn net.Conn, b []byte) []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.armed {
		return b
	}
	if len(b) > n.left {
		b, n.dead = b[:n.left], append(n.dead, conn)
	}
	n.left -= len(b)
	return b
}

func (n *dying) tune(c *pgxpool.Config) {
	c.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		return dyingConn{conn, n}, err
	}
	// It says nothing when it goes, as a dead host.
	c.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
}

type dyingConn struct {
	net.Conn
	net *dying
}

func (c dyingConn) Write(b []byte) (int, error) {
	if some := c.net.arrives(c.Conn, b); len(some) > 0 {
		if n, err := c.Conn.Write(some); err != nil {
			return n, err
		}
	}
	return len(b), nil
}

// locked reports whether the row of the key stays locked.
func (d direct) locked() bool {
	d.t.Helper()
	time.Sleep(2 * time.Millisecond) // for what arrived to be executed
	_, err := d.conn.Exec(d.t.Context(), inTable("SET lock_timeout = '1s'; SELECT FROM LEASES WHERE key = 'nightly' FOR UPDATE", d.table), pgx.QueryExecModeSimpleProtocol)
	var refusal *pgconn.PgError
	if err != nil && (!errors.As(err, &refusal) || refusal.Code != "55P03") {
		d.t.Fatal(err)
	}
	return err != nil
}

// Wherever a request is cut off by the death of its host, it leaves no row locked: the
// server would learn of that death after hours.
func TestHalfARequestLocksNothing(t *testing.T) {
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			var n dying
			e := over(t, shared(t), func(c *pgxpool.Config) {
				n.tune(c)
				c.MaxConns = 1
				c.ConnConfig.DefaultQueryExecMode = mode
			})
			pool, store := opened(t, e)
			d := e.direct(t)
			token := grants(t, store, "nightly", time.Hour)
			for cut, whole := 1, false; !whole; cut += 31 {
				renew(t, store, token) // on a connection that knows the statement
				n.arm(cut)
				ctx, cancel := context.WithCancel(t.Context())
				renewed := start(func() (bool, error) { return store.Renew(ctx, "nightly", token, time.Hour) })
				if d.locked() {
					t.Errorf("the row is locked after %d bytes", cut)
				}
				cancel()
				whole = !n.disarm()
				<-renewed
				pool.Reset()
			}
		})
	}
}

func renew(t *testing.T, store lockfx.Store, token lockfx.Token) {
	t.Helper()
	if ok, err := store.Renew(t.Context(), "nightly", token, time.Hour); !ok || err != nil {
		t.Fatal(ok, err)
	}
}

// A planted fault: the same in messages of their own, of which the last does not arrive.
func TestTheDeathOfAHostIsNoticed(t *testing.T) {
	var n dying
	e := over(t, shared(t), func(c *pgxpool.Config) {
		n.tune(c)
		unprepared(c)
	})
	d := e.direct(t)
	d.exec("INSERT INTO LEASES (key, token, label, expires, forget_at) VALUES ('nightly', 1, '', now(), now())")
	pool := bare(t, e)
	locked := false
	for cut := 100; cut < 400 && !locked; cut += 10 {
		var batch pgx.Batch
		for _, sql := range []string{"begin", inTable("SELECT FROM LEASES WHERE key = 'nightly' FOR UPDATE", d.table), "commit"} {
			batch.Queue(sql)
		}
		conn, err := pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		n.arm(cut)
		ctx, cancel := context.WithCancel(t.Context())
		sent := start(func() (bool, error) { return true, conn.SendBatch(ctx, &batch).Close() })
		locked = d.locked()
		cancel()
		n.disarm()
		<-sent
		conn.Release()
	}
	if !locked {
		t.Error("the test does not notice a row that stays locked")
	}
}
