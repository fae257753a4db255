package queue_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/etcdstore"
	"github.com/lockfx/lockfx/integration/etcdserver"
	"github.com/lockfx/lockfx/integration/pgserver"
	"github.com/lockfx/lockfx/integration/redisserver"
	"github.com/lockfx/lockfx/pgstore"
	"github.com/lockfx/lockfx/redisstore"
)

// engine is a kind of server, and how a store is opened over it.
type engine struct {
	name   string
	launch func(context.Context) (addr string, stop func(), err error)
	// open opens a store with a client of its own, whose requests are counted.
	open func(ctx context.Context, addr string, sent *requests) (opened store, closeClient func() error, err error)
	// pair is how many requests an acquisition and a release are.
	pair int64
	// late is how long after its end a lease can last, since the server looks now and
	// then only.
	late time.Duration

	once sync.Once
	addr string
	stop func() // nil before the start
	err  error
}

// store is what waiting needs of one.
type store interface {
	lockfx.Store
	lockfx.Watcher
	lockfx.Closer
}

var engines = []*engine{
	{name: "redis", launch: launchRedis, open: openRedis, pair: 2},
	{name: "postgres", launch: launchPostgres, open: openPostgres, pair: 2},
	{name: "etcd", launch: launchEtcd, open: openEtcd, pair: 3, late: time.Second},
}

// overEach runs a test over each kind of server. One server serves all tests, so each
// test uses keys of its own.
func overEach(t *testing.T, test func(*testing.T, *engine)) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			e.once.Do(func() { e.addr, e.stop, e.err = e.launch(context.Background()) })
			if e.err != nil {
				t.Fatal(e.err)
			}
			test(t, e)
		})
	}
}

func launchRedis(ctx context.Context) (string, func(), error) {
	s, err := redisserver.Start(ctx)
	if err != nil {
		return "", nil, err
	}
	return s.Addr(), s.Stop, nil
}

func openRedis(_ context.Context, addr string, sent *requests) (store, func() error, error) {
	client := redis.NewClient(&redis.Options{Addr: addr, Dialer: sent.dial})
	s, err := redisstore.New(client)
	return s, client.Close, err
}

func launchPostgres(ctx context.Context) (string, func(), error) {
	s, err := pgserver.Start(ctx, "-cfsync=off") // what is on the disk is not what is tested
	if err != nil {
		return "", nil, err
	}
	pool, err := pgxpool.New(ctx, pgserver.URL(s.Addr()))
	if err == nil {
		err = pgstore.Migrate(ctx, pool)
		pool.Close()
	}
	return s.Addr(), s.Stop, err
}

func openPostgres(ctx context.Context, addr string, sent *requests) (store, func() error, error) {
	config, err := pgxpool.ParseConfig(pgserver.URL(addr))
	if err != nil {
		return nil, nil, err
	}
	config.ConnConfig.DialFunc = sent.dial
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, nil, err
	}
	s, err := pgstore.New(pool)
	return s, func() error { pool.Close(); return nil }, err
}

func launchEtcd(ctx context.Context) (string, func(), error) {
	c, err := etcdserver.Start(ctx, 1, etcdserver.Ordinary)
	if err != nil {
		return "", nil, err
	}
	return c.Addrs()[0], c.Stop, nil
}

func openEtcd(_ context.Context, addr string, sent *requests) (store, func() error, error) {
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{addr}, Logger: zap.NewNop(), DialOptions: sent.interceptors(),
	})
	if err != nil {
		return nil, nil, err
	}
	s, err := etcdstore.New(client)
	return s, client.Close, err
}

// place says where a store is, so that another process can open it.
type place struct{ Engine, Addr string }

func (e *engine) place() place { return place{e.name, e.addr} }

// process is a store as one process has it: with a client of its own.
type process struct {
	store
	sent        requests
	closeClient func() error
}

func (p place) open(ctx context.Context) (*process, error) {
	for _, e := range engines {
		if e.name != p.Engine {
			continue
		}
		opened := new(process)
		var err error
		opened.store, opened.closeClient, err = e.open(ctx, p.Addr, &opened.sent)
		return opened, err
	}
	return nil, fmt.Errorf("no engine is called %q", p.Engine)
}

// close ends the store, and then its client.
func (p *process) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := p.Close(ctx); err != nil {
		return err
	}
	return p.closeClient()
}

// opened is a process of one test.
func (e *engine) opened(t *testing.T) *process {
	t.Helper()
	p, err := e.place().open(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// take acquires a key that is free.
func take(t *testing.T, s lockfx.Store, key string, ttl time.Duration) lockfx.Token {
	t.Helper()
	g, err := s.Acquire(t.Context(), key, ttl)
	if err != nil || !g.OK {
		t.Fatalf("acquire %q: %+v, %v", key, g, err)
	}
	return g.Token
}

func free(t *testing.T, s lockfx.Store, key string, token lockfx.Token) {
	t.Helper()
	if ok, err := s.Release(t.Context(), key, token); err != nil || !ok {
		t.Fatalf("release %q: %v, %v", key, ok, err)
	}
}
