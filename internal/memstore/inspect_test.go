package memstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/lockfx/lockfx"
)

func TestInspectShowsTheLease(t *testing.T) {
	s, c := newStore()
	inspect(t, s, "nightly", lockfx.Lease{})
	g, err := s.Acquire(lockfx.WithLabel(context.Background(), "host/42"), "nightly", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	c.Advance(time.Second)
	inspect(t, s, "nightly", lockfx.Lease{Token: g.Token, Label: "host/42", TimeLeft: 59 * time.Second})
	renew(t, s, "nightly", g.Token, time.Hour, true)
	inspect(t, s, "nightly", lockfx.Lease{Token: g.Token, Label: "host/42", TimeLeft: time.Hour})
	c.Advance(time.Hour)
	inspect(t, s, "nightly", lockfx.Lease{})
}

func TestBreakFreesByForce(t *testing.T) {
	s, c := newStore()
	forceFree(t, s, "nightly", false)
	token := grant(t, s, "nightly", time.Minute)
	forceFree(t, s, "nightly", true)
	forceFree(t, s, "nightly", false)
	renew(t, s, "nightly", token, time.Minute, false)
	release(t, s, "nightly", token, false)
	grant(t, s, "nightly", time.Minute)
	c.Advance(time.Minute)
	forceFree(t, s, "nightly", false)
}
