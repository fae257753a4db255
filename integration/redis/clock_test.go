package redis_test

import (
	"context"
	"testing"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/integration/proxy"
	"github.com/lockfx/lockfx/redisstore"
)

// However far the server's clock is set back, a lease that was given back is over. By
// its record alone it would come to life again: it was taken after the present.
func TestAFreedLeaseStaysFreedWhenTheServersClockIsSetBack(t *testing.T) {
	for name, free := range map[string]func(*redisstore.Store, lockfx.Token) (bool, error){
		"release": func(s *redisstore.Store, token lockfx.Token) (bool, error) { return s.Release(t.Context(), key, token) },
		"break":   func(s *redisstore.Store, _ lockfx.Token) (bool, error) { return s.Break(t.Context(), key) },
	} {
		t.Run(name, func(t *testing.T) {
			e := over(t, single(t))
			s, client := e.store(t), e.servers[0].Client()
			defer client.Close() //nolint:errcheck // a test
			token := granted(t, s, time.Minute)
			ahead := time.Now().Add(time.Hour).UnixMicro() // as if taken before the clock was set back
			client.HSet(t.Context(), e.recordOf(key), "since", ahead)
			if ok, err := free(s, token); !ok || err != nil {
				t.Fatal(ok, err)
			}
			if l := lease(t, s); l != (lockfx.Lease{}) {
				t.Errorf("inspect: %+v; want no lease", l)
			}
			if ok, err := s.Renew(t.Context(), key, token, time.Minute); ok || err != nil {
				t.Errorf("renew of a lease that was given back: %v, %v; want false", ok, err)
			}
			if ok, err := free(s, token); ok || err != nil {
				t.Errorf("free it again: %v, %v; want false", ok, err)
			}
			granted(t, s, time.Minute)
		})
	}
}

func TestAnUndoneLeaseStaysUndoneWhenTheServersClockIsSetBack(t *testing.T) {
	e := over(t, single(t))
	s, server := e.store(t), direct(t, e)
	client := e.servers[0].Client()
	defer client.Close() //nolint:errcheck // a test
	warm(t, s)
	heal, _ := e.inflict(proxy.LoseReplies)
	ctx, cancel := context.WithCancel(t.Context())
	acquire := call(func() (lockfx.Grant, error) { return s.Acquire(ctx, key, time.Minute) })
	eventually(t, "the acquisition reaches the server", func() bool { return lease(t, server).Token != 0 })
	client.HSet(t.Context(), e.recordOf(key), "since", time.Now().Add(time.Hour).UnixMicro())
	heal()
	cancel()
	if got := <-acquire; got.err == nil {
		t.Fatalf("acquire: %+v, want the end of its context", got)
	}
	eventually(t, "the lease is undone", func() bool { return lease(t, server).Token == 0 })
}
