package pg_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/integration/pgserver"
)

// direct is a connection to the server that goes past the store and the proxy.
type direct struct {
	t     testing.TB
	conn  *pgx.Conn
	table string
}

func (e *engine) direct(t testing.TB) direct {
	t.Helper()
	c, err := pgx.Connect(t.Context(), pgserver.URL(e.server.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return direct{t, c, pgx.Identifier{e.table}.Sanitize()}
}

func inTable(sql, table string) string { return strings.ReplaceAll(sql, "LEASES", table) }

// exec executes SQL in which LEASES stands for the table, and returns how many rows
// it met.
func (d direct) exec(sql string, args ...any) int64 {
	d.t.Helper()
	tag, err := d.conn.Exec(d.t.Context(), inTable(sql, d.table), args...)
	if err != nil {
		d.t.Fatal(err)
	}
	return tag.RowsAffected()
}

// value reads one value.
func value[T any](d direct, sql string, args ...any) (v T) {
	d.t.Helper()
	if err := d.conn.QueryRow(d.t.Context(), inTable(sql, d.table), args...).Scan(&v); err != nil {
		d.t.Fatal(err)
	}
	return v
}

// now reads the clock that decides.
func (d direct) now() time.Time {
	d.t.Helper()
	return value[time.Time](d, "SELECT clock_timestamp()")
}

// until waits until a condition of the server holds.
func (d direct) until(condition string, args ...any) {
	d.t.Helper()
	const within = 30 * time.Second
	for begin := time.Now(); !value[bool](d, "SELECT "+condition, args...); time.Sleep(5 * time.Millisecond) {
		if time.Since(begin) > within {
			d.t.Fatal("not so within ", within, ": ", condition)
		}
	}
}

// blocked waits until a statement on the table waits for a lock.
func (d direct) blocked() {
	d.t.Helper()
	d.until(waiting, d.table)
}

// waiters are the connections on which a statement on the table waits.
const waiters = `FROM pg_stat_activity JOIN pg_locks USING (pid) WHERE wait_event_type = 'Lock' AND relation = $1::regclass AND granted`

const waiting = "EXISTS (SELECT " + waiters + ")"

// terminateBlocked ends the connections on which a statement on the table waits. Their
// calls may come again on others.
func (d direct) terminateBlocked() {
	d.t.Helper()
	pids := value[[]int32](d, "SELECT array_agg(DISTINCT pid) "+waiters, d.table)
	d.exec("SELECT pg_terminate_backend(pid) FROM unnest($1::int[]) AS pid", pids)
	d.until("NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = ANY ($1::int[]))", pids)
}

// expired waits until the lease on a key is over, by the clock that decides.
func (d direct) expired(key string) {
	d.t.Helper()
	d.until("EXISTS (SELECT FROM LEASES WHERE key = $1 AND expires < clock_timestamp())", key)
}

// outcome is what a call in another goroutine returned.
type outcome[T any] struct {
	value T
	err   error
}

// start makes a call in another goroutine.
func start[T any](call func() (T, error)) <-chan outcome[T] {
	done := make(chan outcome[T], 1)
	go func() {
		v, err := call()
		done <- outcome[T]{v, err}
	}()
	return done
}

// grants acquires, which must be granted.
func grants(t testing.TB, s lockfx.Store, key string, ttl time.Duration) lockfx.Token {
	t.Helper()
	g, err := s.Acquire(t.Context(), key, ttl)
	if err != nil || !g.OK || !g.Token.Valid() {
		t.Fatalf("acquire %q: %+v, %v; want a grant", key, g, err)
	}
	return g.Token
}

// refuses acquires, which must be refused.
func refuses(t testing.TB, s lockfx.Store, key string) lockfx.Grant {
	t.Helper()
	g, err := s.Acquire(t.Context(), key, time.Minute)
	if err != nil || g.OK {
		t.Fatalf("acquire %q: %+v, %v; want a refusal", key, g, err)
	}
	return g
}
