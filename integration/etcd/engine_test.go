package etcd_test

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/etcdstore"
	"github.com/lockfx/lockfx/integration/crash"
	"github.com/lockfx/lockfx/integration/etcdserver"
	"github.com/lockfx/lockfx/integration/proxy"
	"github.com/lockfx/lockfx/storetest"
)

// engine is the cluster that a store runs over, and the network in between.
type engine struct {
	cluster *etcdserver.Cluster
	proxies []*proxy.Proxy
	prefix  string
	opts    []etcdstore.Option
	opened  []func()
}

// enter stands between one case and a cluster, which many cases may share.
func enter(cluster *etcdserver.Cluster, opts ...etcdstore.Option) (*engine, error) {
	e := &engine{cluster: cluster, prefix: rand.Text() + "/", opts: opts}
	for _, addr := range cluster.Addrs() {
		p, err := proxy.New(addr)
		if err != nil {
			e.close()
			return nil, err
		}
		e.proxies = append(e.proxies, p)
		e.opened = append(e.opened, p.Close)
	}
	return e, nil
}

// client returns a client with ordinary settings whose connections go through the
// proxies.
func (e *engine) client() (*clientv3.Client, error) {
	var addrs []string
	for _, p := range e.proxies {
		addrs = append(addrs, p.Addr())
	}
	c, err := etcdserver.Client(addrs...)
	if err != nil {
		return nil, err
	}
	e.opened = append(e.opened, func() { _ = c.Close() })
	return c, nil
}

// open opens a store as another process would: with a client of its own.
func (e *engine) open() (*etcdstore.Store, error) {
	client, err := e.client()
	if err != nil {
		return nil, err
	}
	return e.over(client)
}

// over opens a store over a client.
func (e *engine) over(client *clientv3.Client) (*etcdstore.Store, error) {
	s, err := etcdstore.New(client, append([]etcdstore.Option{etcdstore.WithPrefix(e.prefix)}, e.opts...)...)
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

// close ends what was opened, the latest first.
func (e *engine) close() {
	for i := range e.opened {
		e.opened[len(e.opened)-1-i]()
	}
}

// harness gives the kit all that can be done to etcd. A cluster that has lost its
// data is another cluster, whose revisions start again: there is no LoseData.
func (e *engine) harness() (*storetest.Harness, error) {
	store, w, err := e.openWired()
	if err != nil {
		e.close()
		return nil, err
	}
	return &storetest.Harness{
		Store:       store,
		TTL:         4 * time.Second,
		Resolution:  time.Second,
		Late:        1200 * time.Millisecond, // etcd looks for expired leases every half second
		Second:      e.handle,
		Partition:   func() (func(), error) { return e.inflict(proxy.BlackHole) },
		LoseReplies: func() (func(), error) { return e.inflict(proxy.LoseReplies) },
		Hold: func() (func(), error) {
			_, deliver := w.hold("")
			return deliver, nil
		},
		// The store sends no instant to etcd and compares none with it: a ttl is all
		// that it ever says. So a clock that is off is like any.
		SkewClientClock: func(time.Duration) (lockfx.Store, error) { return e.open() },
		Crash: func(ctx context.Context, key string, ttl time.Duration) (lockfx.Token, error) {
			at := place{Addrs: e.cluster.Addrs(), Prefix: e.prefix}
			return crash.Acquire(ctx, at.String(), key, ttl)
		},
		Close: e.close,
	}, nil
}

// start starts a cluster for one test.
func start(t testing.TB, members int, heartbeat time.Duration, settings ...etcdserver.Setting) *etcdserver.Cluster {
	t.Helper()
	c, err := etcdserver.Start(t.Context(), members, heartbeat, settings...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	return c
}
