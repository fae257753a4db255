package memstore_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/memstore"
)

// rising fails the test unless each token is greater than the one before.
func rising(t *testing.T, tokens ...lockfx.Token) {
	t.Helper()
	for i := 1; i < len(tokens); i++ {
		if tokens[i] <= tokens[i-1] {
			t.Fatalf("tokens do not rise: %v", tokens)
		}
	}
}

func TestTokensRiseAcrossRelease(t *testing.T) {
	s, _ := newStore()
	first := grant(t, s, "nightly", time.Minute)
	release(t, s, "nightly", first, true)
	rising(t, first, grant(t, s, "nightly", time.Minute))
}

func TestTokensRiseAcrossExpiry(t *testing.T) {
	s, c := newStore()
	first := grant(t, s, "nightly", 1)
	c.Advance(1) // the clock shows the same microsecond
	rising(t, first, grant(t, s, "nightly", time.Minute))
}

func TestTokensRiseAcrossBreak(t *testing.T) {
	s, _ := newStore()
	first := grant(t, s, "nightly", time.Minute)
	forceFree(t, s, "nightly", true)
	rising(t, first, grant(t, s, "nightly", time.Minute))
}

func TestTokensRiseAcrossRestart(t *testing.T) {
	s, c := newStore()
	first := grant(t, s, "nightly", time.Minute)
	c.Advance(time.Microsecond)
	rising(t, first, grant(t, memstore.New(memstore.WithNow(c.Now)), "nightly", time.Minute))
}

func TestTokensRiseAcrossKeysAndClockSteps(t *testing.T) {
	s, c := newStore()
	first := grant(t, s, "nightly", time.Minute)
	c.Advance(-time.Hour)
	second := grant(t, s, "weekly", time.Minute)
	c.Advance(2 * time.Hour)
	third := grant(t, s, "monthly", time.Minute)
	rising(t, first, second, third)
	if int64(third) != c.Now().UnixMicro() {
		t.Errorf("token %v; want the clock's %v", third, c.Now().UnixMicro())
	}
}

func TestTokensStartAtOneBeforeTheEpoch(t *testing.T) {
	s := memstore.New(memstore.WithNow(func() time.Time { return time.Unix(-1, 0) }))
	if token := grant(t, s, "nightly", time.Minute); token != 1 {
		t.Errorf("token %v, want 1", token)
	}
}

func TestNoGrantAfterTheLastToken(t *testing.T) {
	s := memstore.New(memstore.WithNow(func() time.Time { return time.UnixMicro(math.MaxInt64) }))
	if token := grant(t, s, "nightly", time.Minute); token != math.MaxInt64 {
		t.Fatalf("token %v", token)
	}
	g, err := s.Acquire(context.Background(), "weekly", time.Minute)
	if g != (lockfx.Grant{}) || !errors.Is(err, lockfx.ErrStore) {
		t.Errorf("%+v, %v; want an error", g, err)
	}
}
