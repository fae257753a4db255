package pg_test

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/integration/crash"
	"github.com/lockfx/lockfx/integration/pgserver"
	"github.com/lockfx/lockfx/integration/proxy"
	"github.com/lockfx/lockfx/pgstore"
	"github.com/lockfx/lockfx/storetest"
)

// engine is a server that a store runs over, the network in between, and a table of
// its own.
type engine struct {
	server *pgserver.Server
	proxy  *proxy.Proxy
	table  string
	tune   func(*pgxpool.Config)
	opened []func()
}

// enter stands between one case and the server, which many cases share. The store
// reaches it by addr; tune changes the pools of the stores.
func enter(s *pgserver.Server, addr string, tune func(*pgxpool.Config)) (*engine, error) {
	p, err := proxy.New(addr)
	if err != nil {
		return nil, err
	}
	e := &engine{server: s, proxy: p, table: "kit_" + rand.Text(), tune: tune, opened: []func(){p.Close}}
	if err := e.migrate(); err != nil {
		e.close()
		return nil, err
	}
	return e, nil
}

func (e *engine) names() []pgstore.Option { return []pgstore.Option{pgstore.WithTable(e.table)} }

func (e *engine) migrate() error {
	ctx := context.Background()
	c, err := pgx.Connect(ctx, pgserver.URL(e.server.Addr()))
	if err != nil {
		return err
	}
	defer c.Close(ctx) //nolint:errcheck // it has done its work
	return pgstore.Migrate(ctx, c, e.names()...)
}

// pool opens a pool whose connections go through the proxy.
func (e *engine) pool() (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(pgserver.URL(e.proxy.Addr()))
	if err != nil {
		return nil, err
	}
	if e.tune != nil {
		e.tune(config)
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		return nil, err
	}
	e.opened = append(e.opened, pool.Close)
	return pool, nil
}

// open opens a store as another process would: with a pool of its own.
func (e *engine) open(opts ...pgstore.Option) (*pgstore.Store, error) {
	pool, err := e.pool()
	if err != nil {
		return nil, err
	}
	return e.over(pool, opts...)
}

func (e *engine) over(pool *pgxpool.Pool, opts ...pgstore.Option) (*pgstore.Store, error) {
	s, err := pgstore.New(pool, append(e.names(), opts...)...)
	if err != nil {
		return nil, err
	}
	e.opened = append(e.opened, func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			panic("close the store: " + err.Error())
		}
	})
	return s, nil
}

func (e *engine) handle() (lockfx.Store, error) { return e.open() }

// after does something and opens a handle.
func (e *engine) after(do func() error) (lockfx.Store, error) {
	if err := do(); err != nil {
		return nil, err
	}
	return e.open()
}

// restart lets what was committed reach the disk, as a restart that is no crash does.
func (e *engine) restart() error {
	if err := e.server.Do(context.Background(), "CHECKPOINT"); err != nil {
		return err
	}
	return e.server.Restart(context.Background())
}

// lose forgets all that the store ever wrote.
func (e *engine) lose() error {
	if err := e.server.Do(context.Background(), "DROP TABLE "+pgx.Identifier{e.table}.Sanitize()); err != nil {
		return err
	}
	return e.migrate()
}

// close ends what was opened, the latest first.
func (e *engine) close() {
	for i := range e.opened {
		e.opened[len(e.opened)-1-i]()
	}
}

// harness gives the kit all that can be done to PostgreSQL.
func (e *engine) harness() (*storetest.Harness, error) {
	store, err := e.open()
	if err != nil {
		e.close()
		return nil, err
	}
	return &storetest.Harness{
		Store:       store,
		TTL:         time.Second,
		Resolution:  time.Millisecond,
		Second:      e.handle,
		Restart:     func() (lockfx.Store, error) { return e.after(e.restart) },
		LoseData:    func() (lockfx.Store, error) { return e.after(e.lose) },
		Partition:   func() (func(), error) { return e.proxy.Inflict(proxy.BlackHole), nil },
		LoseReplies: func() (func(), error) { return e.proxy.Inflict(proxy.LoseReplies), nil },
		Hold:        func() (func(), error) { return e.proxy.HoldNext(), nil },
		// The store sends no instant of its own to the server and compares none with
		// it: TestNoStatementCarriesTheClientsClock. So a clock that is off is like any.
		SkewClientClock: func(time.Duration) (lockfx.Store, error) { return e.open() },
		Crash: func(ctx context.Context, key string, ttl time.Duration) (lockfx.Token, error) {
			at := place{URL: pgserver.URL(e.server.Addr()), Table: e.table}
			return crash.Acquire(ctx, at.String(), key, ttl)
		},
		Close: e.close,
	}, nil
}

// postgres starts a server for one test.
func postgres(t testing.TB, args ...string) *pgserver.Server {
	t.Helper()
	s, err := pgserver.Start(t.Context(), append(args, quick)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

// over returns an engine over a server for one test.
func over(t testing.TB, s *pgserver.Server, tune func(*pgxpool.Config)) *engine {
	t.Helper()
	e, err := enter(s, s.Addr(), tune)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.close)
	return e
}

// store opens a store for one test.
func (e *engine) store(t testing.TB, opts ...pgstore.Option) *pgstore.Store {
	t.Helper()
	s, err := e.open(opts...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
