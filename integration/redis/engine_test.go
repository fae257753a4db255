package redis_test

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/integration/crash"
	"github.com/lockfx/lockfx/integration/proxy"
	"github.com/lockfx/lockfx/integration/redisserver"
	"github.com/lockfx/lockfx/redisstore"
	"github.com/lockfx/lockfx/storetest"
)

// engine is the servers that a store runs over, and the network in between.
type engine struct {
	servers []*redisserver.Server
	cluster bool
	mindful bool                    // clients end at deadlines, which spares the store goroutines
	proxies map[string]*proxy.Proxy // by the address of the server
	prefix  string
	user    string // of the clients; empty for the default user
	opened  []func()
}

// password is that of every user of a test. The default user takes any.
const password = "secret"

// enter stands between one case and the servers, which many cases share.
func enter(servers ...*redisserver.Server) (*engine, error) {
	e := &engine{servers: servers, cluster: len(servers) > 1, proxies: map[string]*proxy.Proxy{}, prefix: rand.Text() + ":"}
	for _, s := range servers {
		p, err := proxy.New(s.Addr())
		if err != nil {
			return nil, err
		}
		e.proxies[s.Addr()] = p
		e.opened = append(e.opened, p.Close)
	}
	return e, nil
}

func (e *engine) addrs() (addrs []string) {
	for _, s := range e.servers {
		addrs = append(addrs, s.Addr())
	}
	return addrs
}

// client returns a client with otherwise ordinary settings whose connections go through the
// proxies.
func (e *engine) client() redis.UniversalClient {
	c := redis.NewUniversalClient(&redis.UniversalOptions{
		Addrs: e.addrs(), IsClusterMode: e.cluster, ContextTimeoutEnabled: e.mindful, Username: e.user, Password: password,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			p, ok := e.proxies[addr]
			if !ok {
				return nil, errors.New("no server of this test: " + addr)
			}
			return new(net.Dialer).DialContext(ctx, network, p.Addr())
		},
	})
	e.opened = append(e.opened, func() { _ = c.Close() })
	return c
}

// open opens a store as another process would: with a client of its own.
func (e *engine) open(opts ...redisstore.Option) (*redisstore.Store, error) {
	s, err := redisstore.New(e.client(), append([]redisstore.Option{redisstore.WithPrefix(e.prefix)}, opts...)...)
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

// each does something to every server and opens a handle.
func (e *engine) each(do func(*redisserver.Server) error) (lockfx.Store, error) {
	for _, s := range e.servers {
		if err := do(s); err != nil {
			return nil, err
		}
	}
	return e.open()
}

func (e *engine) inflict(f proxy.Fault) (heal func(), err error) {
	var heals []func()
	for _, p := range e.proxies {
		heals = append(heals, p.Inflict(f))
	}
	return func() {
		for _, heal := range heals {
			heal()
		}
	}, nil
}

// hold keeps the next request back.
func (e *engine) hold() (deliver func(), err error) {
	var delivers []func()
	for _, p := range e.proxies {
		delivers = append(delivers, p.HoldNext())
	}
	return func() {
		for _, deliver := range delivers {
			deliver()
		}
	}, nil
}

func flush(s *redisserver.Server) error {
	c := s.Client()
	return errors.Join(c.FlushAll(context.Background()).Err(), c.Close())
}

// close ends what was opened, the latest first.
func (e *engine) close() {
	for i := range e.opened {
		e.opened[len(e.opened)-1-i]()
	}
}

// harness gives the kit all that can be done to Redis.
func (e *engine) harness(cut proxy.Fault) (*storetest.Harness, error) {
	store, err := e.open()
	if err != nil {
		e.close()
		return nil, err
	}
	h := &storetest.Harness{
		Store:       store,
		TTL:         500 * time.Millisecond,
		Resolution:  time.Millisecond,
		Second:      e.handle,
		LoseData:    func() (lockfx.Store, error) { return e.each(flush) },
		Partition:   func() (func(), error) { return e.inflict(cut) },
		LoseReplies: func() (func(), error) { return e.inflict(proxy.LoseReplies) },
		Hold:        e.hold,
		// The store sends no instant of its own to the server and compares none with
		// it: TestNoCommandCarriesTheClientsClock. So a clock that is off is like any.
		SkewClientClock: func(time.Duration) (lockfx.Store, error) { return e.open() },
		Crash: func(ctx context.Context, key string, ttl time.Duration) (lockfx.Token, error) {
			at := place{Addrs: e.addrs(), Cluster: e.cluster, Prefix: e.prefix, User: e.user}
			return crash.Acquire(ctx, at.String(), key, ttl)
		},
		Close: e.close,
	}
	if !e.cluster {
		h.Restart = func() (lockfx.Store, error) {
			return e.each(func(s *redisserver.Server) error {
				return errors.Join(s.Restart(context.Background()), e.permit(s))
			})
		}
	}
	return h, nil
}

// single starts a server for one test.
func single(t *testing.T, args ...string) *redisserver.Server {
	t.Helper()
	s, err := redisserver.Start(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

// over returns an engine over a server for one test.
func over(t *testing.T, s *redisserver.Server) *engine {
	t.Helper()
	e, err := enter(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.close)
	return e
}

// store opens a store for one test.
func (e *engine) store(t *testing.T, opts ...redisstore.Option) *redisstore.Store {
	t.Helper()
	s, err := e.open(opts...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
