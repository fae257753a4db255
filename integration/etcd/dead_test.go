package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/integration/proxy"
)

// A dead connection is one that a firewall or a NAT has forgotten: nothing that is sent
// on it arrives, and neither side is told. New connections work.

// twoWays is an engine over one member that clients reach by two addresses.
func twoWays(t *testing.T) *engine {
	t.Helper()
	e := one(t)
	p, err := proxy.New(e.cluster.Addrs()[0])
	if err != nil {
		t.Fatal(err)
	}
	e.proxies, e.opened = append(e.proxies, p), append(e.opened, p.Close)
	return e
}

// dead makes the present connections of one way dead ones.
func (e *engine) dead(t *testing.T, way int) {
	t.Helper()
	t.Cleanup(e.proxies[way].Hold()) // before all is closed
}

// leased renews within the time that a lifecycle has for it, at its first heartbeat.
func leased(t *testing.T, s lockfx.Store, token lockfx.Token, ttl time.Duration) (bool, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), ttl*2/3-ttl/100)
	defer cancel()
	return s.Renew(ctx, key, token, ttl)
}

func TestAHoldOutlivesADeadConnection(t *testing.T) {
	for _, ttl := range []time.Duration{3 * time.Second, 30 * time.Second} {
		for way := range 2 { // the store uses both in turn
			t.Run(fmt.Sprint(ttl, " way ", way), func(t *testing.T) {
				e := twoWays(t)
				s := e.store(t)
				token := granted(t, s, key, ttl)
				renew(t, s, key, token, ttl, true)
				e.dead(t, way)
				for range 4 {
					begin := time.Now()
					if ok, err := leased(t, s, token, ttl); !ok || err != nil {
						t.Fatalf("renew: %v, %v after %v", ok, err, time.Since(begin))
					}
				}
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				if ok, err := s.Release(ctx, key, token); !ok && err == nil {
					t.Error("released by nobody")
				}
			})
		}
	}
}

// To check a password before a stream is opened takes the connection that is dead.
func TestAHoldOutlivesADeadConnectionWhereAPasswordIsAskedFor(t *testing.T) {
	for way := range 2 {
		t.Run(fmt.Sprint("way ", way), func(t *testing.T) {
			e := twoWays(t)
			admin, _, _ := e.secured(t)
			client, err := clientv3.New(clientv3.Config{
				Endpoints: []string{e.proxies[0].Addr(), e.proxies[1].Addr()},
				Username:  "app", Password: "secret", Logger: zap.NewNop(),
			})
			if err != nil {
				t.Fatal(err)
			}
			e.opened = append(e.opened, func() { _ = client.Close() })
			s, err := e.over(client)
			if err != nil {
				t.Fatal(err)
			}
			const ttl = 30 * time.Second
			token := granted(t, s, key, ttl)
			e.dead(t, way)
			must(t, func() error { return staleTokens["the password was set again"].spoil(t, admin) })
			for range 2 {
				begin := time.Now()
				if ok, err := leased(t, s, token, ttl); !ok || err != nil {
					t.Fatalf("renew: %v, %v after %v", ok, err, time.Since(begin))
				}
			}
		})
	}
}

// With one endpoint it is the client that has to notice: gRPC asks every 10 s at the
// earliest, whatever DialKeepAliveTime says. A short lease is over by then.
func TestKeepaliveSavesALongLeaseFromADeadConnectionToTheOnlyEndpoint(t *testing.T) {
	for ttl, saved := range map[time.Duration]bool{30 * time.Second: true, 10 * time.Second: false} {
		t.Run(ttl.String(), func(t *testing.T) {
			e := one(t)
			client, err := clientv3.New(clientv3.Config{
				Endpoints: []string{e.proxies[0].Addr()}, Logger: zap.NewNop(),
				DialKeepAliveTime: time.Second, DialKeepAliveTimeout: time.Second,
			})
			if err != nil {
				t.Fatal(err)
			}
			e.opened = append(e.opened, func() { _ = client.Close() })
			s, err := e.over(client)
			if err != nil {
				t.Fatal(err)
			}
			token := granted(t, s, key, ttl)
			e.dead(t, 0)
			begin := time.Now()
			if ok, err := leased(t, s, token, ttl); ok != saved || (err == nil) != saved {
				t.Errorf("renew: %v, %v after %v; want %v", ok, err, time.Since(begin), saved)
			}
		})
	}
}

// Without that nothing helps, and the error says what would.
func TestADeadConnectionToTheOnlyEndpointIsAnErrorThatSaysWhatHelps(t *testing.T) {
	e := one(t)
	s := e.store(t)
	const ttl = 15 * time.Second
	token := granted(t, s, key, ttl)
	e.dead(t, 0)
	begin := time.Now()
	ok, err := leased(t, s, token, ttl)
	if ok || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "DialKeepAliveTime") || time.Since(begin) > ttl {
		t.Errorf("renew: %v, %v after %v", ok, err, time.Since(begin))
	}
	if g, err := s.Acquire(t.Context(), "free", ttl); g.OK || !errors.Is(err, lockfx.ErrStore) || !strings.Contains(err.Error(), "DialKeepAliveTime") {
		t.Errorf("acquire: %+v, %v", g, err)
	}
}

// Those who wait are not told of a dead connection either. The store asks etcd whether
// it is still listened to.
func TestAWaiterOnADeadConnectionHasItsTurn(t *testing.T) {
	for way := range 2 {
		t.Run(fmt.Sprint("way ", way), func(t *testing.T) {
			e := twoWays(t)
			waiter := e.store(t)
			direct, err := e.over(e.raw(t))
			if err != nil {
				t.Fatal(err)
			}
			token := granted(t, direct, key, time.Hour)
			watching := make(chan struct{})
			turn := make(chan time.Time, 1)
			go func() {
				freed, stop, err := waiter.Watch(t.Context(), key)
				close(watching)
				for {
					if err == nil {
						<-freed
						stop()
					}
					if g, _ := waiter.Acquire(t.Context(), key, time.Hour); g.OK || t.Context().Err() != nil {
						turn <- time.Now()
						return
					}
					freed, stop, err = waiter.Watch(t.Context(), key)
				}
			}()
			<-watching
			e.dead(t, way)
			release(t, direct, key, token, true)
			begin := time.Now()
			select {
			case at := <-turn:
				t.Logf("after %v", at.Sub(begin))
			case <-time.After(25 * time.Second):
				t.Error("no turn in 25 s")
			}
		})
	}
}

// Without another way to etcd, the watch is lost at least.
func TestAWatchOnADeadConnectionIsLost(t *testing.T) {
	e := one(t)
	s := e.store(t)
	freed := watched(t, s, key)
	e.dead(t, 0)
	begin := time.Now()
	select {
	case _, open := <-freed:
		if open {
			t.Error("a signal, want the channel closed")
		}
		t.Logf("after %v", time.Since(begin))
	case <-time.After(20 * time.Second):
		t.Error("the watch is deaf after 20 s")
	}
}
