package memstore_test

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/memstore"
	"github.com/lockfx/lockfx/internal/storemodel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newStore() (*memstore.Store, *storemodel.Clock) {
	c := new(storemodel.Clock)
	return memstore.New(memstore.WithNow(c.Now)), c
}

// grant acquires key, which must be free.
func grant(t testing.TB, s lockfx.Store, key string, ttl time.Duration) lockfx.Token {
	t.Helper()
	g, err := s.Acquire(context.Background(), key, ttl)
	if err != nil || !g.OK || !g.Token.Valid() || g.HeldBy != "" || g.RetryAfter != 0 {
		t.Fatalf("Acquire(%q) = %+v, %v; want a plain grant", key, g, err)
	}
	return g.Token
}

// refuse acquires key, which must be held for as long as left.
func refuse(t testing.TB, s lockfx.Store, key string, left time.Duration) {
	t.Helper()
	g, err := s.Acquire(context.Background(), key, time.Minute)
	if err != nil || g.OK || g.Token != 0 || g.RetryAfter != left {
		t.Fatalf("Acquire(%q) = %+v, %v; want a refusal for %v", key, g, err, left)
	}
}

func renew(t testing.TB, s lockfx.Store, key string, token lockfx.Token, ttl time.Duration, want bool) {
	t.Helper()
	if ok, err := s.Renew(context.Background(), key, token, ttl); err != nil || ok != want {
		t.Fatalf("Renew(%q, %v, %v) = %v, %v; want %v", key, token, ttl, ok, err, want)
	}
}

func release(t testing.TB, s lockfx.Store, key string, token lockfx.Token, want bool) {
	t.Helper()
	if ok, err := s.Release(context.Background(), key, token); err != nil || ok != want {
		t.Fatalf("Release(%q, %v) = %v, %v; want %v", key, token, ok, err, want)
	}
}

func forceFree(t testing.TB, s lockfx.Breaker, key string, want bool) {
	t.Helper()
	if ok, err := s.Break(context.Background(), key); err != nil || ok != want {
		t.Fatalf("Break(%q) = %v, %v; want %v", key, ok, err, want)
	}
}

func inspect(t testing.TB, s lockfx.Inspector, key string, want lockfx.Lease) {
	t.Helper()
	if l, err := s.Inspect(context.Background(), key); err != nil || l != want {
		t.Fatalf("Inspect(%q) = %+v, %v; want %+v", key, l, err, want)
	}
}
