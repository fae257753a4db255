package redis_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/integration/proxy"
)

// fill sets the server's limit below what it uses.
func fill(t *testing.T, admin *redis.Client) (empty func()) {
	t.Helper()
	limit := func(bytes string) {
		if err := admin.ConfigSet(t.Context(), "maxmemory", bytes).Err(); err != nil {
			t.Fatal(err)
		}
	}
	limit("1mb")
	return func() { limit("0") }
}

// On a server without memory nobody gets a lease, but whoever has one can keep it and
// give it back.
func TestAFullServerKeepsAndFreesLeases(t *testing.T) {
	eachClient(t, func(t *testing.T, e *engine) {
		s := e.store(t)
		admin := e.servers[0].Client()
		defer admin.Close() //nolint:errcheck // a test
		var many []lockfx.Renewal
		for i := range 250 {
			k := strconv.Itoa(i)
			g, err := s.Acquire(t.Context(), k, time.Minute)
			if err != nil || !g.OK {
				t.Fatal(g, err)
			}
			many = append(many, lockfx.Renewal{Key: k, Token: g.Token, TTL: time.Hour})
		}
		token := granted(t, s, time.Minute)
		empty := fill(t, admin)
		defer empty()
		if err := admin.Set(t.Context(), "filler", "x", 0).Err(); err == nil {
			t.Fatal("the server is not full")
		}
		if g, err := s.Acquire(t.Context(), "another", time.Minute); g.OK || !errors.Is(err, lockfx.ErrStore) || !strings.Contains(err.Error(), "OOM") {
			t.Errorf("acquire: %+v, %v; want an error that says OOM", g, err)
		}
		if g, err := s.Acquire(t.Context(), key, time.Minute); g.OK || err != nil {
			t.Errorf("acquire what is held: %+v, %v; want a refusal", g, err)
		}
		for _, ttl := range []time.Duration{time.Minute, 100 * time.Hour, time.Second * 30} {
			if ok, err := s.Renew(t.Context(), key, token, ttl); !ok || err != nil {
				t.Errorf("renew for %v: %v, %v; want true", ttl, ok, err)
			}
		}
		for i, r := range s.RenewMany(t.Context(), many) {
			if !r.OK || r.Err != nil {
				t.Fatalf("renewal %d of many: %+v", i, r)
			}
		}
		if ok, err := s.Release(t.Context(), key, token); !ok || err != nil {
			t.Errorf("release: %v, %v; want true", ok, err)
		}
		if ok, err := s.Break(t.Context(), "7"); !ok || err != nil {
			t.Errorf("break: %v, %v; want true", ok, err)
		}
		for _, k := range []string{key, "7"} {
			if l, err := s.Inspect(t.Context(), k); err != nil || l.Token != 0 {
				t.Errorf("inspect %q: %+v, %v; want no lease", k, l, err)
			}
		}
	})
}

// An acquisition that was given up is undone also while the server is full, whether it
// arrived before its undo or arrives after it.
func TestAFullServerUndoes(t *testing.T) {
	e := over(t, single(t))
	s, server := e.store(t), direct(t, e)
	admin := e.servers[0].Client()
	defer admin.Close() //nolint:errcheck // a test
	warm(t, s)

	heal, _ := e.inflict(proxy.LoseReplies)
	ctx, cancel := context.WithCancel(t.Context())
	acquire := call(func() (lockfx.Grant, error) { return s.Acquire(ctx, key, time.Hour) })
	eventually(t, "the acquisition reaches the server", func() bool { return lease(t, server).Token != 0 })
	empty := fill(t, admin)
	heal()
	cancel()
	<-acquire
	eventually(t, "the lease is undone", func() bool { return lease(t, server).Token == 0 })

	tombstones := func() int { return len(admin.Keys(t.Context(), "*:undone:*").Val()) }
	before := tombstones()
	let := e.overtaken()
	ctx, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := s.Acquire(ctx, key, time.Hour); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	eventually(t, "the undo leaves a tombstone", func() bool { return tombstones() == before+1 })
	empty()
	let()
	if l := lease(t, server); l.Token != 0 {
		t.Errorf("the late request took the lock: %+v", l)
	}
}
