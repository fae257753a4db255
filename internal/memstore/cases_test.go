package memstore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/memstore"
	"github.com/lockfx/lockfx/internal/storemodel"
)

func TestCase_A01_DeadContextNeverGetsALease(t *testing.T) {
	s, _ := newStore()
	dead, cancel := context.WithCancel(context.Background())
	cancel()
	if g, err := s.Acquire(dead, "nightly", time.Minute); g != (lockfx.Grant{}) || !errors.Is(err, context.Canceled) {
		t.Errorf("%+v, %v", g, err)
	}
	inspect(t, s, "nightly", lockfx.Lease{})
}

// The context ends while the call waits for its turn: after the first look at it,
// before the decision.
func TestCase_A01_ContextThatEndsDuringTheCallGetsNoLease(t *testing.T) {
	var endCall func()
	s := memstore.New(memstore.WithNow(func() time.Time { endCall(); return storemodel.Epoch }))
	for op, call := range calls(s, 1) {
		if op == "watch" {
			continue // it decides nothing by the clock
		}
		ctx, cancel := context.WithCancel(context.Background())
		endCall = cancel
		if err := call(ctx, "nightly"); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", op, err)
		}
	}
	endCall = func() {}
	inspect(t, s, "nightly", lockfx.Lease{})
}

func TestCase_A05_ContentionAndFailureAreNeverMixedUp(t *testing.T) {
	s, _ := newStore()
	grant(t, s, "nightly", time.Minute)
	refuse(t, s, "nightly", time.Minute)

	dead, cancel := context.WithCancel(context.Background())
	cancel()
	if g, err := s.Acquire(dead, "nightly", time.Minute); err == nil || g != (lockfx.Grant{}) {
		t.Errorf("a failure shows a grant or a holder: %+v, %v", g, err)
	}
}

func TestCase_A06_ExpiredLeaseIsTakenInOneCall(t *testing.T) {
	s, c := newStore()
	grant(t, s, "nightly", time.Minute)
	c.Advance(time.Minute - 1)
	refuse(t, s, "nightly", 1)
	c.Advance(1)
	grant(t, s, "nightly", time.Minute)
}

func TestCase_A07_TheLabelIsNoIdentity(t *testing.T) {
	s, _ := newStore()
	ctx := lockfx.WithLabel(context.Background(), "host")
	first, err := s.Acquire(ctx, "nightly", time.Minute)
	if err != nil || !first.OK {
		t.Fatal(first, err)
	}
	if g, err := s.Acquire(ctx, "nightly", time.Minute); err != nil || g.OK || g.HeldBy != "host" {
		t.Errorf("%+v, %v", g, err)
	}
	if ok, err := s.Release(ctx, "nightly", first.Token-1); err != nil || ok {
		t.Errorf("a release by label: %v, %v", ok, err)
	}
}

func TestCase_A09_ShortTTLIsRefusedNeverRounded(t *testing.T) {
	s, c := newStore()
	token := grant(t, s, "held", time.Minute)
	for _, ttl := range []time.Duration{0, -1, -time.Hour} {
		if g, err := s.Acquire(context.Background(), "nightly", ttl); g.OK || !errors.Is(err, lockfx.ErrConfig) {
			t.Errorf("acquire for %v: %+v, %v", ttl, g, err)
		}
		if ok, err := s.Renew(context.Background(), "held", token, ttl); ok || !errors.Is(err, lockfx.ErrConfig) {
			t.Errorf("renew to %v: %v, %v", ttl, ok, err)
		}
	}
	inspect(t, s, "held", lockfx.Lease{Token: token, TimeLeft: time.Minute})
	grant(t, s, "nightly", 1)
	refuse(t, s, "nightly", 1)
	c.Advance(1)
	grant(t, s, "nightly", 1)
}

func TestCase_A10_TwoAcquisitionsInOneProcessExcludeEachOther(t *testing.T) {
	s, _ := newStore()
	token := grant(t, s, "nightly", time.Minute)
	refuse(t, s, "nightly", time.Minute)
	release(t, s, "nightly", token, true)
	grant(t, s, "nightly", time.Minute)
}

func TestCase_R06_RenewNeverCreates(t *testing.T) {
	s, c := newStore()
	renew(t, s, "never held", 1, time.Minute, false)
	renew(t, s, "never held", 0, time.Minute, false)
	released := grant(t, s, "released", time.Minute)
	release(t, s, "released", released, true)
	renew(t, s, "released", released, time.Minute, false)
	broken := grant(t, s, "broken", time.Minute)
	forceFree(t, s, "broken", true)
	renew(t, s, "broken", broken, time.Minute, false)
	expired := grant(t, s, "expired", time.Minute)
	c.Advance(time.Minute)
	renew(t, s, "expired", expired, time.Minute, false)
	for _, key := range []string{"never held", "released", "broken", "expired"} {
		inspect(t, s, key, lockfx.Lease{})
	}
}

func TestCase_R07_ForeignTokenChangesNothing(t *testing.T) {
	s, c := newStore()
	stale := grant(t, s, "nightly", time.Minute)
	c.Advance(time.Minute)
	token := grant(t, s, "nightly", time.Minute)
	other := grant(t, s, "weekly", time.Minute)
	for _, foreign := range []lockfx.Token{stale, other, token + 1, token - 1, 0, -token} {
		renew(t, s, "nightly", foreign, time.Hour, false)
		release(t, s, "nightly", foreign, false)
		inspect(t, s, "nightly", lockfx.Lease{Token: token, TimeLeft: time.Minute})
	}
}

func TestCase_L03_LateReleaseSparesTheNextHolder(t *testing.T) {
	s, c := newStore()
	late := grant(t, s, "nightly", time.Minute)
	c.Advance(time.Minute)
	next := grant(t, s, "nightly", time.Minute)
	release(t, s, "nightly", late, false)
	inspect(t, s, "nightly", lockfx.Lease{Token: next, TimeLeft: time.Minute})
}

func TestCase_T01_TokensOutliveTheirRecords(t *testing.T) {
	s, c := newStore()
	var tokens []lockfx.Token
	for range 1000 { // more than it takes to sweep
		token := grant(t, s, "nightly", time.Minute)
		release(t, s, "nightly", token, true)
		tokens = append(tokens, token)
	}
	c.Advance(time.Millisecond) // as many microseconds as tokens
	tokens = append(tokens, grant(t, memstore.New(memstore.WithNow(c.Now)), "nightly", time.Minute))
	rising(t, tokens...)
}

func TestCase_T05_RenewedLeaseStillExpires(t *testing.T) {
	s, c := newStore()
	token := grant(t, s, "nightly", time.Minute)
	for range 20 {
		c.Advance(30 * time.Second)
		renew(t, s, "nightly", token, time.Minute, true)
	}
	c.Advance(time.Minute - 1)
	refuse(t, s, "nightly", 1)
	c.Advance(1)
	grant(t, s, "nightly", time.Minute)
}

func TestCase_T08_KeysAreExact(t *testing.T) {
	s, _ := newStore()
	keys := []string{
		"host-1", "host-10", "host-1 ", " host-1", "Host-1", "HOST-1", "host_1", "host%1", "host*",
		"é", "e\u0301", "\u00df", "ss", "İ", "i",
		"costarring", "liquid", // one 32-bit FNV-1a hash
		"a/b", "a//b", "a/./b", "a\nb", "{a}b", "a",
	}
	tokens := map[string]lockfx.Token{}
	for _, key := range keys {
		tokens[key] = grant(t, s, key, time.Minute)
	}
	for _, key := range keys {
		release(t, s, key, tokens[key], true)
		delete(tokens, key)
		for other, token := range tokens {
			inspect(t, s, other, lockfx.Lease{Token: token, TimeLeft: time.Minute})
		}
	}
}
