package redis_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/integration/proxy"
	"github.com/lockfx/lockfx/redisstore"
)

// behind starts a replica of primary that knows nothing of what happens after its start.
func behind(t *testing.T, primary string) (addr string) {
	t.Helper()
	link, err := proxy.New(primary)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(link.Close)
	replica := single(t, "--replicaof", strings.Replace(link.Addr(), ":", " ", 1))
	client := replica.Client()
	defer client.Close() //nolint:errcheck // a test
	eventually(t, "the replica follows", func() bool {
		return stats(t, client, "replication", "master_link_status") == "up"
	})
	link.Inflict(proxy.BlackHole)
	return replica.Addr()
}

// astray opens a store whose first connections lead to one server and all later ones to
// another, as after a fail-over behind one name.
func (e *engine) astray(t *testing.T, first int64, wrong, right string, retries int) *redisstore.Store {
	t.Helper()
	var dialed atomic.Int64
	client := redis.NewClient(&redis.Options{
		MaxRetries: retries, ContextTimeoutEnabled: e.mindful,
		Dialer: func(ctx context.Context, network, _ string) (net.Conn, error) {
			addr := right
			if dialed.Add(1) <= first {
				addr = wrong
			}
			return new(net.Dialer).DialContext(ctx, network, addr)
		},
	})
	t.Cleanup(func() { _ = client.Close() })
	s, err := redisstore.New(client, redisstore.WithPrefix(e.prefix))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A connection that leads to a replica is given up for another one. What the replica
// knows of the lease is old, and decides nothing.
func TestAReplicaIsAskedForNothing(t *testing.T) {
	eachClient(t, func(t *testing.T, e *engine) {
		primary := e.servers[0].Addr()
		replica := behind(t, primary)
		server := direct(t, e)
		for _, retries := range []int{0, -1} { // the default, and none
			for name, op := range map[string]func(*redisstore.Store, lockfx.Token) (bool, error){
				"renew": func(s *redisstore.Store, token lockfx.Token) (bool, error) {
					return s.Renew(t.Context(), key, token, time.Hour)
				},
				"renew many": func(s *redisstore.Store, token lockfx.Token) (bool, error) {
					r := s.RenewMany(t.Context(), []lockfx.Renewal{{Key: "other", Token: 1, TTL: time.Hour}, {Key: key, Token: token, TTL: time.Hour}})
					return r[1].OK, errors.Join(r[0].Err, r[1].Err)
				},
				"release": func(s *redisstore.Store, token lockfx.Token) (bool, error) {
					return s.Release(t.Context(), key, token)
				},
				"break": func(s *redisstore.Store, _ lockfx.Token) (bool, error) { return s.Break(t.Context(), key) },
				"acquire another": func(s *redisstore.Store, _ lockfx.Token) (bool, error) {
					g, err := s.Acquire(t.Context(), "another "+t.Name(), short)
					return g.OK, err
				},
			} {
				token := granted(t, server, time.Hour)
				s := e.astray(t, 2, replica, primary, retries)
				if ok, err := op(s, token); !ok || err != nil {
					t.Errorf("%s, MaxRetries %d: %v, %v; want true, from the primary", name, retries, ok, err)
				}
				_, _ = server.Break(t.Context(), key)
				expire()
			}
		}
	})
}

// Where all connections lead to a replica, its answers are errors: no refusal, and no
// end of a lease.
func TestAReplicasNoIsAnError(t *testing.T) {
	eachClient(t, func(t *testing.T, e *engine) {
		primary := e.servers[0].Addr()
		server := direct(t, e)
		stale := granted(t, server, time.Hour) // known to the replica, and over at the primary
		replica := behind(t, primary)
		release(t, server, stale)
		held := granted(t, server, time.Hour)
		s := e.astray(t, 1<<62, replica, primary, 0)
		var all sync.WaitGroup
		for name, op := range map[string]func(context.Context) (bool, error){
			"acquire a held key": func(ctx context.Context) (bool, error) {
				g, err := s.Acquire(ctx, key, time.Minute)
				return g != lockfx.Grant{}, err
			},
			"acquire a free key": func(ctx context.Context) (bool, error) {
				g, err := s.Acquire(ctx, "another", time.Minute)
				return g != lockfx.Grant{}, err
			},
			"renew":             func(ctx context.Context) (bool, error) { return s.Renew(ctx, key, held, time.Minute) },
			"renew what is old": func(ctx context.Context) (bool, error) { return s.Renew(ctx, key, stale, time.Minute) },
			"release":           func(ctx context.Context) (bool, error) { return s.Release(ctx, key, held) },
			"break":             func(ctx context.Context) (bool, error) { return s.Break(ctx, key) },
			"break what it does not know": func(ctx context.Context) (bool, error) {
				return s.Break(ctx, "unknown")
			},
			"renew many": func(ctx context.Context) (bool, error) {
				r := s.RenewMany(ctx, []lockfx.Renewal{{Key: key, Token: held, TTL: time.Minute}, {Key: "other", Token: 1, TTL: time.Minute}})
				if (r[0].Err == nil) != (r[1].Err == nil) {
					t.Errorf("renew many: %+v", r)
				}
				return r[0].OK || r[1].OK, r[0].Err
			},
		} {
			all.Go(func() {
				begun := time.Now()
				ok, err := op(t.Context())
				if ok || !errors.Is(err, lockfx.ErrStore) || !strings.Contains(err.Error(), "READONLY") {
					t.Errorf("%s: %v, %v; want an error that says READONLY", name, ok, err)
				}
				if took := time.Since(begun); took > 5*time.Second {
					t.Errorf("%s took %v", name, took)
				}
			})
		}
		all.Wait()
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
