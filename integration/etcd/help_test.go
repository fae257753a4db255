package etcd_test

import (
	"context"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/etcdstore"
	"github.com/lockfx/lockfx/integration/etcdserver"
)

const key = "nightly"

// one starts a member for one test, which then runs beside others.
func one(t *testing.T, opts ...etcdstore.Option) *engine {
	t.Helper()
	t.Parallel()
	return on(t, start(t, 1, etcdserver.Quick), opts...)
}

// on returns an engine over a cluster for one test.
func on(t testing.TB, cluster *etcdserver.Cluster, opts ...etcdstore.Option) *engine {
	t.Helper()
	e, err := enter(cluster, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.close)
	return e
}

// store opens a store for one test.
func (e *engine) store(t testing.TB) *etcdstore.Store {
	t.Helper()
	s, err := e.open()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// raw returns a client that asks the cluster itself.
func (e *engine) raw(t testing.TB) *clientv3.Client {
	t.Helper()
	c, err := etcdserver.Client(e.cluster.Addrs()...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func granted(t testing.TB, s lockfx.Store, key string, ttl time.Duration) lockfx.Token {
	t.Helper()
	g, err := s.Acquire(t.Context(), key, ttl)
	if err != nil || !g.OK || !g.Token.Valid() {
		t.Fatalf("acquire %q: %+v, %v; want a grant", key, g, err)
	}
	return g.Token
}

func refused(t testing.TB, s lockfx.Store, key string) lockfx.Grant {
	t.Helper()
	g, err := s.Acquire(t.Context(), key, time.Minute)
	if err != nil || g.OK {
		t.Fatalf("acquire %q: %+v, %v; want a refusal", key, g, err)
	}
	return g
}

func renew(t testing.TB, s lockfx.Store, key string, token lockfx.Token, ttl time.Duration, want bool) {
	t.Helper()
	if ok, err := s.Renew(t.Context(), key, token, ttl); ok != want || err != nil {
		t.Fatalf("renew %q: %v, %v; want %v", key, ok, err, want)
	}
}

func release(t testing.TB, s lockfx.Store, key string, token lockfx.Token, want bool) {
	t.Helper()
	if ok, err := s.Release(t.Context(), key, token); ok != want || err != nil {
		t.Fatalf("release %q: %v, %v; want %v", key, ok, err, want)
	}
}

// freed acquires until the key is granted, which must be so within d. Errors pass.
func freed(t testing.TB, s lockfx.Store, key string, d time.Duration) lockfx.Token {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	for {
		g, err := s.Acquire(ctx, key, time.Minute)
		if err == nil && g.OK {
			return g.Token
		}
		select {
		case <-ctx.Done():
			t.Fatalf("acquire %q: %+v, %v after %v; want a grant", key, g, err, d)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func closed(t testing.TB, s *etcdstore.Store) {
	t.Helper()
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// leases returns the leases that the cluster has.
func leases(t testing.TB, c *clientv3.Client) []clientv3.LeaseStatus {
	t.Helper()
	answer, err := c.Leases(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return answer.Leases
}

// records returns how many keys there are below a prefix.
func records(t testing.TB, c *clientv3.Client, prefix string) int64 {
	t.Helper()
	answer, err := c.Get(t.Context(), prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		t.Fatal(err)
	}
	return answer.Count
}
