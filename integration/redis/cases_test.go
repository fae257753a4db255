package redis_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/integration/redisserver"
	"github.com/lockfx/lockfx/redisstore"
)

const short = 100 * time.Millisecond

// expire outlives a lease of length short that was taken or renewed just now.
func expire() { time.Sleep(short + short/2) }

func release(t *testing.T, s *redisstore.Store, token lockfx.Token) {
	t.Helper()
	if ok, err := s.Release(t.Context(), key, token); !ok || err != nil {
		t.Fatalf("release: %v, %v; want true", ok, err)
	}
}

func TestCase_A06_AnExpiredLeaseIsTakenInOneCall(t *testing.T) {
	s := over(t, single(t)).store(t)
	first := granted(t, s, short)
	expire()
	if next := granted(t, s, short); next <= first {
		t.Errorf("token %d after %d", next, first)
	}
}

func TestCase_A09_NoTTLIsRoundedToZero(t *testing.T) {
	s := over(t, single(t)).store(t)
	for _, ttl := range []time.Duration{time.Millisecond - 1, time.Microsecond, 1, 0, -1} {
		if g, err := s.Acquire(t.Context(), key, ttl); g.OK || !errors.Is(err, lockfx.ErrConfig) {
			t.Errorf("ttl %v: %+v, %v; want an error that matches lockfx.ErrConfig", ttl, g, err)
		}
	}
	granted(t, s, time.Millisecond+1) // neither gone at once in the server's arithmetic, nor there for ever
	expire()
	granted(t, s, short)
}

func TestCase_T01_ATokenOutlivesItsRecord(t *testing.T) {
	s := over(t, single(t)).store(t)
	var last lockfx.Token
	for range 100 {
		token := granted(t, s, time.Minute)
		if token <= last {
			t.Fatalf("token %d after %d", token, last)
		}
		release(t, s, token)
		last = token
	}
}

func TestCase_T05_ALeaseThatWasRenewedStillEnds(t *testing.T) {
	s := over(t, single(t)).store(t)
	token := granted(t, s, short)
	for range 30 {
		time.Sleep(short / 3)
		if ok, err := s.Renew(t.Context(), key, token, short); err != nil {
			t.Fatal(err)
		} else if !ok { // this machine was too slow for the lease: take it anew
			token = granted(t, s, short)
		}
	}
	expire()
	if next := granted(t, s, short); next <= token {
		t.Errorf("token %d after %d", next, token)
	}
}

// Whatever is in the key, all names of a lock are in one slot of a cluster.
func TestCase_T06_NoScriptCrossesSlots(t *testing.T) {
	cluster, err := redisserver.StartCluster(t.Context(), 3)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Stop)
	client := cluster.Client()
	defer client.Close() //nolint:errcheck // a test
	s, err := redisstore.New(client)
	if err != nil {
		t.Fatal(err)
	}
	var renewals []lockfx.Renewal
	for _, k := range []string{"a", "b", "c", "{", "}", "{}", "a{b}c", "{a}{b}", "}{", "%7D", "{a", "a}", strings.Repeat("}", lockfx.MaxKeyLen)} {
		g, err := s.Acquire(t.Context(), k, time.Minute)
		if err != nil || !g.OK {
			t.Fatalf("%q: %+v, %v", k, g, err)
		}
		renewals = append(renewals, lockfx.Renewal{Key: k, Token: g.Token, TTL: time.Minute})
	}
	for i, r := range s.RenewMany(t.Context(), renewals) {
		if !r.OK || r.Err != nil {
			t.Errorf("%q: %+v", renewals[i].Key, r)
		}
	}
}

func TestCase_T07_ALongKeyIsRefusedAndNamesTheRule(t *testing.T) {
	s := over(t, single(t)).store(t)
	_, err := s.Acquire(t.Context(), strings.Repeat("k", lockfx.MaxKeyLen+1), time.Minute)
	if !errors.Is(err, lockfx.ErrConfig) || !strings.Contains(err.Error(), "513 bytes; at most 512") {
		t.Errorf("%v; want an error that names the rule", err)
	}
}

func TestCase_T08_KeysAreExact(t *testing.T) {
	s := over(t, single(t)).store(t)
	keys := []string{"host-1", "host-10", "Host-1", "host-1 ", "é", "e\u0301", "{host}-1", "host%7D", "host}"}
	tokens := make([]lockfx.Token, len(keys))
	for i, k := range keys {
		g, err := s.Acquire(t.Context(), k, time.Minute)
		if err != nil || !g.OK {
			t.Fatalf("%q is held, though only %q are: %+v, %v", k, keys[:i], g, err)
		}
		tokens[i] = g.Token
	}
	for i, k := range slices.Backward(keys) {
		if ok, err := s.Release(t.Context(), k, tokens[i]); !ok || err != nil {
			t.Errorf("release %q: %v, %v", k, ok, err)
		}
	}
}
