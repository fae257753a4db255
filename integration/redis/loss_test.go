package redis_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// On a line that loses one packet in fifty, eight replicas use one key in turn: no lease
// is granted to nobody, and none is said to be lost that was given back.
func TestALineThatLosesPacketsCostsNoLease(t *testing.T) {
	const replicas, ttl, lasts = 8, 30 * time.Second, 5 * time.Second
	eachClient(t, func(t *testing.T, e *engine) {
		p := e.proxies[e.servers[0].Addr()]
		p.Lose(0.02, 250*time.Millisecond)
		defer p.Lose(0, 0)
		ctx, cancel := context.WithTimeout(t.Context(), lasts)
		defer cancel()
		var held, runs atomic.Int64
		var all sync.WaitGroup
		for range replicas {
			s := e.store(t)
			all.Go(func() {
				for ctx.Err() == nil {
					g, err := s.Acquire(ctx, key, ttl)
					if err != nil && !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("acquire: %v", err)
					}
					if !g.OK {
						time.Sleep(time.Millisecond)
						continue
					}
					if held.Add(1) != 1 {
						t.Error("two hold the key")
					}
					runs.Add(1)
					if ok, err := s.Renew(t.Context(), key, g.Token, ttl); !ok || err != nil {
						t.Errorf("renew: %v, %v; want true", ok, err)
					}
					held.Add(-1)
					if ok, err := s.Release(t.Context(), key, g.Token); !ok || err != nil {
						t.Errorf("release: %v, %v; want true", ok, err)
					}
				}
			})
		}
		all.Wait()
		p.Lose(0, 0)
		begun := time.Now()
		server := direct(t, e)
		eventually(t, "the key is free", func() bool {
			g, err := server.Acquire(t.Context(), key, short)
			return err == nil && g.OK
		})
		if took := time.Since(begun); took > ttl/3 {
			t.Errorf("the key was nobody's for %v", took)
		}
		if runs.Load() < 20 {
			t.Errorf("%d runs in %v", runs.Load(), lasts)
		}
		t.Logf("%d runs", runs.Load())
	})
}
