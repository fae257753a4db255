package redis_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/redisstore"
)

// silence keeps everything back that the present connections carry, as a firewall does
// that has forgotten them. New ones are as ever.
func (e *engine) silence() (let func()) { return e.proxies[e.servers[0].Addr()].Hold() }

// crowd leaves n idle connections in the client's pool.
func crowd(t *testing.T, s *redisstore.Store, n int) {
	t.Helper()
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			for range 10 {
				if _, err := s.Inspect(t.Context(), strconv.Itoa(i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// A connection that is dead, and does not show it, costs no lease while the server is
// well: each operation comes through within a lease of 2 s.
func TestADeadConnectionCostsNoLease(t *testing.T) {
	const ttl = 2 * time.Second
	eachClient(t, func(t *testing.T, e *engine) {
		server := direct(t, e)
		for name, op := range map[string]func(context.Context, *redisstore.Store, lockfx.Token) (bool, error){
			"renew": func(ctx context.Context, s *redisstore.Store, token lockfx.Token) (bool, error) {
				return s.Renew(ctx, key, token, time.Hour)
			},
			"renew many": func(ctx context.Context, s *redisstore.Store, token lockfx.Token) (bool, error) {
				r := s.RenewMany(ctx, []lockfx.Renewal{{Key: key, Token: token, TTL: time.Hour}})[0]
				return r.OK, r.Err
			},
			"release": func(ctx context.Context, s *redisstore.Store, token lockfx.Token) (bool, error) {
				return s.Release(ctx, key, token)
			},
			"break": func(ctx context.Context, s *redisstore.Store, _ lockfx.Token) (bool, error) { return s.Break(ctx, key) },
			"acquire": func(ctx context.Context, s *redisstore.Store, _ lockfx.Token) (bool, error) {
				g, err := s.Acquire(ctx, "another", short)
				return g.OK, err
			},
			"inspect": func(ctx context.Context, s *redisstore.Store, token lockfx.Token) (bool, error) {
				l, err := s.Inspect(ctx, key)
				return l.Token == token, err
			},
		} {
			s := e.store(t)
			warm(t, s)
			crowd(t, s, 3)
			token := granted(t, server, time.Hour)
			let := e.silence()
			ctx, cancel := context.WithTimeout(t.Context(), 2*ttl/3)
			begun := time.Now()
			if ok, err := op(ctx, s, token); !ok || err != nil {
				t.Errorf("%s: %v, %v after %v; want true", name, ok, err, time.Since(begun))
			}
			t.Logf("%s took %v", name, time.Since(begun))
			cancel()
			let()
			_, _ = server.Break(t.Context(), key)
			expire()
		}
	})
}

// The heartbeats that leave together survive a dead connection together.
func TestADeadConnectionCostsNoneOfManyLeases(t *testing.T) {
	eachClient(t, func(t *testing.T, e *engine) {
		s := e.store(t)
		warm(t, s)
		tokens := make([]lockfx.Token, 50)
		for i := range tokens {
			g, err := s.Acquire(t.Context(), strconv.Itoa(i), time.Hour)
			if err != nil || !g.OK {
				t.Fatal(g, err)
			}
			tokens[i] = g.Token
		}
		defer e.silence()()
		ctx, cancel := context.WithTimeout(t.Context(), 1300*time.Millisecond)
		defer cancel()
		var all sync.WaitGroup
		for i, token := range tokens {
			all.Go(func() {
				if ok, err := s.Renew(ctx, strconv.Itoa(i), token, time.Hour); !ok || err != nil {
					t.Errorf("renewal %d: %v, %v; want true", i, ok, err)
				}
			})
		}
		all.Wait()
	})
}

// A connection that breaks under a request costs no lease either, also where the client
// does not send requests again.
func TestABrokenConnectionCostsNoLease(t *testing.T) {
	e := over(t, single(t))
	server, p := direct(t, e), e.proxies[e.servers[0].Addr()]
	client := redis.NewClient(&redis.Options{Addr: p.Addr(), MaxRetries: -1})
	defer client.Close() //nolint:errcheck // a test
	s, err := redisstore.New(client, redisstore.WithPrefix(e.prefix))
	if err != nil {
		t.Fatal(err)
	}
	warm(t, s)
	for name, op := range map[string]func(lockfx.Token) (bool, error){
		"renew": func(token lockfx.Token) (bool, error) { return s.Renew(t.Context(), key, token, time.Hour) },
		"renew many": func(token lockfx.Token) (bool, error) {
			r := s.RenewMany(t.Context(), []lockfx.Renewal{{Key: key, Token: token, TTL: time.Hour}})[0]
			return r.OK, r.Err
		},
		"release": func(token lockfx.Token) (bool, error) { return s.Release(t.Context(), key, token) },
	} {
		token := granted(t, server, time.Hour)
		e.overtaken()
		time.AfterFunc(20*time.Millisecond, func() { p.Retarget(e.servers[0].Addr()) }) // which cuts all
		if ok, err := op(token); !ok || err != nil {
			t.Errorf("%s: %v, %v; want true", name, ok, err)
		}
		_, _ = server.Break(t.Context(), key)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
