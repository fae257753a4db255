package redis_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

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
