package etcd_test

import (
	"context"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/etcdstore"
	"github.com/lockfx/lockfx/integration/etcdserver"
	"github.com/lockfx/lockfx/integration/proxy"
)

func TestCase_T01_T03_TokensOutliveRecordsAndRecordsEnd(t *testing.T) {
	e := one(t)
	s, raw := e.store(t), e.raw(t)
	token := granted(t, s, key, time.Minute)
	release(t, s, key, token, true)
	closed(t, s)
	if n, l := records(t, raw, ""), leases(t, raw); n != 0 || len(l) != 0 {
		t.Errorf("an unused key costs %d records and leases %v", n, l)
	}
	status, err := raw.Get(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := raw.Compact(t.Context(), status.Header.Revision); err != nil { // forget the past
		t.Fatal(err)
	}
	if err := e.cluster.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if next := granted(t, e.store(t), key, time.Minute); next <= token {
		t.Errorf("token %v after %v", next, token)
	}
}

func TestCase_T04_ABrokenConnectionEndsNoLease(t *testing.T) {
	e := one(t)
	s := e.store(t)
	token := granted(t, s, key, time.Minute)
	heal, err := e.inflict(proxy.Drop)
	if err != nil {
		t.Fatal(err)
	}
	heal()
	renew(t, s, key, token, time.Minute, true)
	refused(t, s, key)
	release(t, s, key, token, true)
}

func TestCase_T05_AMovedRecordStillEnds(t *testing.T) {
	e := one(t)
	s := e.store(t)
	token := granted(t, s, key, 2*time.Second)
	for _, ttl := range []time.Duration{3 * time.Second, time.Hour, 2 * time.Second, time.Second} {
		renew(t, s, key, token, ttl, true)
	}
	lease, err := s.Inspect(lockfx.WithLabel(t.Context(), "nobody"), key)
	if err != nil || lease.Token != token {
		t.Errorf("%+v, %v; want token %v", lease, err, token)
	}
	freed(t, s, key, 4*time.Second)
	closed(t, s)
	if l := leases(t, e.raw(t)); len(l) != 1 {
		t.Errorf("leases %v, want that of the last holder", l)
	}
}

func TestCase_T05_MovingKeepsTheLabel(t *testing.T) {
	e := one(t)
	s := e.store(t)
	g, err := s.Acquire(lockfx.WithLabel(t.Context(), "host/1"), key, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	renew(t, s, key, g.Token, time.Hour, true)
	if by := refused(t, s, key).HeldBy; by != "host/1" {
		t.Errorf("held by %q, want host/1", by)
	}
}

func TestCase_T06_EveryMemberDecidesAlike(t *testing.T) {
	t.Parallel()
	cluster := start(t, 3, etcdserver.Ordinary)
	var stores []*etcdstore.Store
	e := on(t, cluster)
	for _, m := range cluster.Servers {
		client, err := m.Client()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close() })
		s, err := e.over(client)
		if err != nil {
			t.Fatal(err)
		}
		stores = append(stores, s)
	}
	var last lockfx.Token
	for i := range 30 {
		a, b, c := stores[i%3], stores[(i+1)%3], stores[(i+2)%3]
		token := granted(t, a, key, time.Minute)
		if token <= last {
			t.Fatalf("token %v after %v", token, last)
		}
		last = token
		refused(t, b, key)
		renew(t, c, key, token, time.Minute, true)
		release(t, b, key, token, true)
	}
}

func TestCase_T08_PrefixesAreExact(t *testing.T) {
	t.Parallel()
	cluster := start(t, 1, etcdserver.Quick)
	a, b := on(t, cluster), on(t, cluster)
	a.prefix, b.prefix = "locks/", "locks/host/"
	outer, inner := a.store(t), b.store(t)
	signal, stop, err := outer.Watch(t.Context(), "host/1")
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	token := granted(t, inner, "1", time.Minute)
	granted(t, outer, "host/1", time.Minute)
	granted(t, outer, "1", time.Minute)
	release(t, inner, "1", token, true)
	granted(t, inner, "1", time.Minute)
	refused(t, outer, "host/1")
	select {
	case <-signal:
		t.Error("the release of another store's key woke")
	default:
	}
}

// A record that was put by hand is held, for as long as it is there.
func TestARecordOfSomebodyElseIsRespected(t *testing.T) {
	e := one(t)
	s, raw := e.store(t), e.raw(t)
	if _, err := raw.Put(t.Context(), e.prefix+key, "maintenance"); err != nil {
		t.Fatal(err)
	}
	if g := refused(t, s, key); g.HeldBy != "maintenance" || g.RetryAfter < time.Hour {
		t.Errorf("%+v", g)
	}
	if ok, err := s.Break(t.Context(), key); !ok || err != nil {
		t.Error(ok, err)
	}
	granted(t, s, key, time.Minute)
}

func TestARecordThatWasDeletedByHandIsLost(t *testing.T) {
	e := one(t)
	s, raw := e.store(t), e.raw(t)
	token := granted(t, s, key, time.Minute)
	if _, err := raw.Delete(t.Context(), e.prefix+key, clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
	renew(t, s, key, token, time.Minute, false)
	renew(t, s, key, token, time.Hour, false)
	release(t, s, key, token, false)
}

// A renewal that was overtaken on its way, between its look and its move, touches
// nothing of the next holder.
func TestARenewalThatWasOvertakenMovesNothing(t *testing.T) {
	e := one(t)
	s, w := e.wired(t)
	other := e.store(t)
	token := granted(t, s, key, time.Minute)
	var next lockfx.Token
	w.through(func(ctx context.Context, method string, send func(context.Context) error) error {
		if method == "Txn" { // the move
			if ok, err := other.Break(t.Context(), key); !ok || err != nil {
				t.Error(ok, err)
			}
			next = granted(t, other, key, time.Minute)
		}
		return send(ctx)
	})
	renew(t, s, key, token, time.Hour, false)
	w.through(nil)
	if left := refused(t, s, key).RetryAfter; left > 2*time.Minute {
		t.Errorf("the next holder's lease lasts for %v", left)
	}
	renew(t, other, key, next, time.Minute, true)
}

func TestAReleaseThroughAnotherHandleLeavesNoLease(t *testing.T) {
	e := one(t)
	s, other := e.store(t), e.store(t)
	release(t, other, key, granted(t, s, key, time.Hour), true)
	closed(t, other)
	if l := leases(t, e.raw(t)); len(l) != 0 {
		t.Errorf("leases %v are left", l)
	}
}

// The create revision of what is not there is 0.
func TestTokensThatAreNoneDoNothing(t *testing.T) {
	e := one(t)
	s := e.store(t)
	for _, none := range []lockfx.Token{0, -1} {
		release(t, s, key, none, false)
		renew(t, s, key, none, time.Minute, false)
	}
}
