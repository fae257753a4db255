package pg_test

import (
	"context"
	"net"
	"regexp"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/pgstore"
)

// trips counts round trips: how often a connection turns from sending to receiving.
// sent is in bytes.
type trips struct{ n, sent atomic.Int64 }

// tune makes a pool count.
func (c *trips) tune(config *pgxpool.Config) {
	config.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		return &counted{Conn: conn, trips: c}, err
	}
	// A pool asks whether a connection is alive after a second without use.
	config.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
}

// of returns how many round trips a call takes.
func (c *trips) of(call func()) int64 {
	before := c.n.Load()
	call()
	return c.n.Load() - before
}

// leaves waits until a call has sent something.
func (c *trips) leaves(call func()) {
	before := c.sent.Load()
	call()
	for c.sent.Load() == before {
		time.Sleep(time.Millisecond)
	}
}

type counted struct {
	net.Conn
	trips   *trips
	sending atomic.Bool
}

func (c *counted) Write(b []byte) (int, error) {
	c.sending.Store(true)
	n, err := c.Conn.Write(b)
	c.trips.sent.Add(int64(n))
	return n, err
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && c.sending.Swap(false) {
		c.trips.n.Add(1)
	}
	return n, err
}

var modes = []pgx.QueryExecMode{
	pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
}

// Every operation is one round trip once the statements are known, in each mode that
// a pool can be set to, and with an asynchronous commit too. (The mode
// describe_exec describes each statement first, by its own choice.)
func TestEveryOperationIsOneRoundTrip(t *testing.T) {
	for _, mode := range modes {
		for name, opts := range map[string][]pgstore.Option{"durable": nil, "async": {pgstore.WithAsyncCommit()}} {
			t.Run(mode.String()+" "+name, func(t *testing.T) {
				var c trips
				e := over(t, shared(t), func(config *pgxpool.Config) {
					c.tune(config)
					config.MaxConns = 1
					config.ConnConfig.DefaultQueryExecMode = mode
				})
				store := e.store(t, opts...)
				for range 50 { // the sweep comes along now and then
					everyOperation(t, store, quietly)
				}
				everyOperation(t, store, func(op string, call func()) {
					want := int64(1)
					if op == "break" { // it asks whose lease it breaks
						want = 2
					}
					if n := c.of(call); n != want {
						t.Errorf("%s took %d round trips, want %d", op, n, want)
					}
				})
			})
		}
	}
}

func quietly(_ string, call func()) { call() }

// everyOperation makes each call once; around sees it happen. It returns the tokens
// that were granted.
func everyOperation(t *testing.T, s *pgstore.Store, around func(op string, call func())) []lockfx.Token {
	t.Helper()
	ctx := t.Context()
	must := func(op string, call func() (bool, error)) {
		t.Helper()
		var ok bool
		var err error
		around(op, func() { ok, err = call() })
		if !ok || err != nil {
			t.Fatalf("%s: %v, %v", op, ok, err)
		}
	}
	var g lockfx.Grant
	take := func() (bool, error) {
		var err error
		g, err = s.Acquire(lockfx.WithLabel(ctx, "me"), "nightly", time.Minute)
		return g.OK, err
	}
	must("acquire", take)
	must("refusal", func() (bool, error) {
		other, err := s.Acquire(ctx, "nightly", time.Minute)
		return !other.OK && other.HeldBy == "me" && other.RetryAfter > 50*time.Second, err
	})
	must("renew", func() (bool, error) { return s.Renew(ctx, "nightly", g.Token, time.Hour) })
	must("shorten", func() (bool, error) { return s.Renew(ctx, "nightly", g.Token, time.Minute) })
	must("inspect", func() (bool, error) {
		l, err := s.Inspect(ctx, "nightly")
		return l.Token == g.Token && l.Label == "me" && l.TimeLeft > 50*time.Second, err
	})
	must("renew many", func() (bool, error) {
		r := s.RenewMany(ctx, []lockfx.Renewal{{Key: "nightly", Token: g.Token, TTL: time.Hour}, {Key: "ünknown", Token: 1, TTL: time.Hour}})
		return r[0].OK && !r[1].OK, r[0].Err
	})
	first := g.Token
	must("release", func() (bool, error) { return s.Release(ctx, "nightly", first) })
	must("acquire again", take)
	must("break", func() (bool, error) { return s.Break(ctx, "nightly") })
	return []lockfx.Token{first, g.Token}
}

// A planted fault: a transaction that waits for the answer to each of its parts.
func TestTheCountNoticesASecondRoundTrip(t *testing.T) {
	var c trips
	e := over(t, shared(t), c.tune)
	pool, err := e.pool()
	if err != nil {
		t.Fatal(err)
	}
	n := c.of(func() {
		err = pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), "SELECT 1", pgx.QueryExecModeSimpleProtocol)
			return err
		})
	})
	if err != nil || n < 3 {
		t.Errorf("%d round trips, %v; want at least 3", n, err)
	}
}

// Idle waiters send nothing: the server tells them.
func TestIdleWaitersSendNothing(t *testing.T) {
	var c trips
	e := over(t, shared(t), c.tune)
	store := e.store(t)
	grants(t, store, "nightly", time.Hour)
	for range 50 {
		_, stop, err := store.Watch(t.Context(), "nightly")
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
	}
	if n := c.of(func() { time.Sleep(3 * time.Second) }); n != 0 {
		t.Errorf("%d round trips in 3 s", n)
	}
}

// texts collects what is sent.
type texts struct{ seen chan string }

func (a texts) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	a.seen <- data.SQL
	return ctx
}
func (texts) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// A clock of the client that is off can't matter if it is never sent. No number but
// the tokens, which the server made, is anywhere near the present.
func TestNoStatementCarriesTheClientsClock(t *testing.T) {
	a := texts{make(chan string, 1000)}
	store := over(t, shared(t), func(c *pgxpool.Config) { c.ConnConfig.Tracer = a }).store(t)
	tokens := everyOperation(t, store, quietly)
	close(a.seen)
	var numbers []int64
	for sql := range a.seen {
		for _, digits := range regexp.MustCompile(`\d{9,}`).FindAllString(sql, -1) {
			if n, err := strconv.ParseInt(digits, 10, 64); err == nil {
				numbers = append(numbers, n)
			}
		}
	}
	if !slices.Contains(numbers, int64(tokens[0])) {
		t.Errorf("the tokens %v are not among what was seen: %v", tokens, numbers)
	}
	for _, n := range numbers {
		if !slices.Contains(tokens, lockfx.Token(n)) && nearThePresent(n) {
			t.Errorf("%d is an instant", n)
		}
	}
	if !nearThePresent(time.Now().Unix()) || !nearThePresent(time.Now().UnixMicro()) { // a planted fault
		t.Error("the test does not notice an instant")
	}
}

// nearThePresent reports whether n is an instant of this week in any usual unit.
func nearThePresent(n int64) bool {
	const week = 7 * 24 * time.Hour
	for _, then := range []time.Time{time.Unix(n, 0), time.UnixMilli(n), time.UnixMicro(n), time.Unix(0, n)} {
		if time.Since(then).Abs() < week {
			return true
		}
	}
	return false
}
