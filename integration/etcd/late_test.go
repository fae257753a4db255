package etcd_test

import (
	"context"
	"testing"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/integration/etcdserver"
)

// givenUp renews, and gives up when a request of it is kept back.
func givenUp(t *testing.T, s lockfx.Store, token lockfx.Token, ttl time.Duration, kept <-chan struct{}) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		<-kept
		cancel()
	}()
	if ok, err := s.Renew(ctx, key, token, ttl); err == nil {
		t.Fatalf("renew: %v without an answer; want an error", ok)
	}
}

// The kit holds up the first request of each call; a renewal for another time moves the
// key with its last one.
func TestAMoveThatArrivesLateCutsNoLaterRenewalShort(t *testing.T) {
	e := one(t)
	s, w := e.wired(t)
	token := granted(t, s, key, time.Hour)
	kept, deliver := w.hold("Txn")
	givenUp(t, s, token, time.Second, kept)
	renew(t, s, key, token, 2*time.Hour, true)
	deliver()
	if held, err := s.Inspect(t.Context(), key); err != nil || held.Token != token || held.TimeLeft < time.Hour {
		t.Errorf("%+v, %v; want token %v for two hours", held, err, token)
	}

	// So does one that arrives just before the later one does.
	kept, deliver = w.hold("Txn")
	givenUp(t, s, token, time.Second, kept)
	w.through(func(ctx context.Context, method string, send func(context.Context) error) error {
		if method == "LeaseGrant" {
			deliver()
		}
		return send(ctx)
	})
	renew(t, s, key, token, 3*time.Hour, true)
	w.through(nil)
	if held, err := s.Inspect(t.Context(), key); err != nil || held.Token != token || held.TimeLeft < 2*time.Hour {
		t.Errorf("%+v, %v; want token %v for three hours", held, err, token)
	}
}

// A lease that may still be kept alive by a late request goes to no other holder.
func TestALeaseWithARequestUnderWayIsNotUsedAgain(t *testing.T) {
	t.Parallel()
	e := on(t, start(t, 1, etcdserver.Quick))
	s, w := e.wired(t)
	raw := e.raw(t)
	token := granted(t, s, key, time.Hour)
	before := leases(t, raw)
	kept, deliver := w.hold("LeaseKeepAlive")
	givenUp(t, s, token, time.Hour, kept)
	release(t, s, key, token, true)
	granted(t, s, key, time.Hour)
	deliver()
	for _, l := range leases(t, raw) {
		if l.ID == before[0].ID {
			t.Error("the next holder has the lease of the last one")
		}
	}
}
