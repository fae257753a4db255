package etcd_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/etcdstore"
	"github.com/lockfx/lockfx/integration/etcdserver"
)

func TestCase_A02_ALostReplyLeavesNothing(t *testing.T) {
	for _, lost := range []string{"LeaseGrant", "Txn", "LeaseTimeToLive"} {
		t.Run(lost, func(t *testing.T) {
			e := one(t)
			s, w := e.wired(t)
			want := 0
			if lost == "LeaseTimeToLive" { // a refusal
				granted(t, e.store(t), key, time.Hour)
				want = 1
			}
			ctx, cancel := context.WithCancel(t.Context())
			w.through(func(ctx context.Context, method string, send func(context.Context) error) error {
				err := send(ctx)
				if method == lost {
					cancel()
					err = context.Canceled
				}
				return err
			})
			if g, err := s.Acquire(ctx, key, time.Hour); g.OK || !errors.Is(err, context.Canceled) {
				t.Fatalf("%+v, %v; want the end of the context", g, err)
			}
			closed(t, s)
			raw := e.raw(t)
			if n := records(t, raw, e.prefix); n != int64(want) {
				t.Errorf("%d records, want %d", n, want)
			}
			if l := leases(t, raw); len(l) != want {
				t.Errorf("leases %v, want %d", l, want)
			}
		})
	}
}

// The request of an acquisition can't overtake its undoing: the lease that it needs
// is gone for good.
func TestCase_A02_ADelayedRequestComesTooLate(t *testing.T) {
	e := one(t)
	s, w := e.wired(t)
	late := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	w.through(func(ctx context.Context, method string, send func(context.Context) error) error {
		if method != "Txn" {
			return send(ctx)
		}
		cancel()
		go func() { // on its way still
			time.Sleep(200 * time.Millisecond)
			late <- send(context.WithoutCancel(ctx))
		}()
		return context.Canceled
	})
	if g, err := s.Acquire(ctx, key, time.Hour); g.OK || err == nil {
		t.Fatalf("%+v, %v; want an error", g, err)
	}
	if err := <-late; err == nil || err.Error() != "rpc error: code = NotFound desc = etcdserver: requested lease not found" {
		t.Errorf("the late request: %v; want a refusal for want of its lease", err)
	}
	if n := records(t, e.raw(t), e.prefix); n != 0 {
		t.Error("the late request left a record")
	}
}

// An attempt whose reply was lost did win: the next one must not take it for another
// holder's.
func TestCase_A02_ARepeatedAttemptMeetsItself(t *testing.T) {
	e := one(t, etcdstore.WithPool(2))
	s, w := e.wired(t)
	first := true
	w.through(func(ctx context.Context, method string, send func(context.Context) error) error {
		err := send(ctx)
		if method == "Txn" && first {
			first, err = false, errors.New("connection reset")
		}
		return err
	})
	token := granted(t, s, key, time.Minute)
	refused(t, e.store(t), key)
	renew(t, s, key, token, time.Minute, true)

	first = true
	if ok, err := s.Release(t.Context(), key, token); ok || !errors.Is(err, lockfx.ErrStore) {
		t.Errorf("a release whose outcome is unknown: %v, %v; want an error", ok, err)
	}
	granted(t, s, key, time.Minute)

	first = true
	if ok, err := s.Break(t.Context(), key); ok || !errors.Is(err, lockfx.ErrStore) {
		t.Errorf("a break whose outcome is unknown: %v, %v; want an error", ok, err)
	}
	granted(t, s, key, time.Minute)
}

func TestCase_A05_AnOutageIsNoRefusal(t *testing.T) {
	t.Parallel()
	cluster := start(t, 3, etcdserver.Ordinary)
	e := on(t, cluster)
	s := e.store(t)
	token := granted(t, s, key, time.Hour)
	for _, m := range cluster.Servers[:2] { // no quorum is left
		m.Process().Kill()
	}
	call := func(op string, f func(context.Context) (bool, error)) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		begin := time.Now()
		if ok, err := f(ctx); ok || err == nil || time.Since(begin) > 10*time.Second {
			t.Errorf("%s without a quorum: %v, %v after %v; want an error, in time", op, ok, err, time.Since(begin))
		}
	}
	acquire := func(key string) func(context.Context) (bool, error) {
		return func(ctx context.Context) (bool, error) {
			g, err := s.Acquire(ctx, key, time.Minute)
			return g.OK, err
		}
	}
	call("acquire a held key", acquire(key))
	call("acquire a free key", acquire("free"))
	call("renew", func(ctx context.Context) (bool, error) { return s.Renew(ctx, key, token, time.Hour) })
	call("release a token that is not there", func(ctx context.Context) (bool, error) { return s.Release(ctx, "free", token) })
	call("inspect", func(ctx context.Context) (bool, error) {
		lease, err := s.Inspect(ctx, key)
		return lease.Token != 0, err
	})
	call("watch", func(ctx context.Context) (bool, error) {
		_, stop, err := s.Watch(ctx, "free")
		if err == nil {
			stop()
		}
		return err == nil, err
	})

	begin := time.Now()
	if _, err := s.Acquire(t.Context(), "free", time.Minute); !errors.Is(err, lockfx.ErrStore) || time.Since(begin) > 15*time.Second {
		t.Errorf("without a deadline: %v after %v; want lockfx.ErrStore after 5 s", err, time.Since(begin))
	}
	for _, m := range cluster.Servers[:2] {
		go func() { _ = m.Restart(context.Background()) }() // one alone is not ready
	}
	freed(t, s, "free", time.Minute)
	refused(t, s, key)
	renew(t, s, key, token, time.Hour, true)
	for _, m := range cluster.Servers[:2] { // for the end of the test
		if err := ready(t, m); err != nil {
			t.Error(err)
		}
	}
}

func TestCase_A06_AnExpiredLeaseIsTakenInOneCall(t *testing.T) {
	e := one(t)
	s := e.store(t)
	ended := watched(t, s, key)
	first := granted(t, s, key, time.Second)
	wakes(t, ended) // the end of a lease wakes as well
	if next := granted(t, e.store(t), key, time.Second); next <= first {
		t.Errorf("token %v after %v", next, first)
	}
}

// The store holds no instant across a pause: a lease that ended meanwhile carries
// nothing.
func TestCase_A08_APauseBeforeTheDecisionGrantsNothing(t *testing.T) {
	e := one(t)
	s, w := e.wired(t)
	w.through(func(ctx context.Context, method string, send func(context.Context) error) error {
		if method == "Txn" {
			time.Sleep(1900 * time.Millisecond) // longer than the lease, and than etcd takes to notice
		}
		return send(ctx)
	})
	if g, err := s.Acquire(t.Context(), key, time.Second); g.OK || !errors.Is(err, lockfx.ErrStore) {
		t.Errorf("%+v, %v; want lockfx.ErrStore", g, err)
	}
	w.through(nil)
	granted(t, s, key, time.Second)
}

func TestCase_A09_NoLeaseIsShorterThanAskedFor(t *testing.T) {
	e := one(t)
	s, raw := e.store(t), e.raw(t)
	if _, err := s.Acquire(t.Context(), key, time.Second-1); !errors.Is(err, lockfx.ErrConfig) {
		t.Errorf("%v, want lockfx.ErrConfig", err)
	}
	token := granted(t, s, key, 1500*time.Millisecond)
	renew(t, s, key, token, 2500*time.Millisecond, true)
	for _, l := range leases(t, raw) {
		answer, err := raw.TimeToLive(t.Context(), l.ID)
		if err == nil && answer.TTL >= 0 && answer.GrantedTTL < 2 {
			t.Errorf("a lease of %d s", answer.GrantedTTL)
		}
	}
}
