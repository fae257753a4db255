package etcd_test

import (
	"context"
	"maps"
	"strconv"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/etcdstore"
	"github.com/lockfx/lockfx/integration/etcdserver"
)

func sends(t *testing.T, w *wire, what string, want map[string]int, do func()) {
	t.Helper()
	if got := w.counted(do); !maps.Equal(got, want) {
		t.Errorf("%s sends %v, want %v", what, got, want)
	}
}

// A bare pair of transactions is two requests.
func TestWhatEachOperationSends(t *testing.T) {
	e := one(t)
	s, w := e.wired(t)
	other := e.store(t)
	var token lockfx.Token
	sends(t, w, "the first acquisition", map[string]int{"LeaseGrant": 1, "Txn": 1}, func() { token = granted(t, s, key, time.Minute) })
	sends(t, w, "a renewal", map[string]int{"Range": 1, "LeaseKeepAlive": 1}, func() { renew(t, s, key, token, time.Minute, true) })
	sends(t, w, "a release", map[string]int{"Txn": 1}, func() { release(t, s, key, token, true) })
	sends(t, w, "the next acquisition", map[string]int{"LeaseKeepAlive": 1, "Txn": 1}, func() { token = granted(t, s, key, time.Minute) })
	release(t, s, key, token, true)
	sends(t, w, "an end", map[string]int{"LeaseRevoke": 1}, func() { closed(t, s) })

	token = granted(t, other, key, time.Minute)
	sends(t, w, "a renewal of what another handle took", map[string]int{"Range": 1, "LeaseKeepAlive": 1}, func() { renew(t, s, key, token, time.Minute, true) })
	sends(t, w, "a renewal with a foreign token", map[string]int{"Range": 1}, func() { renew(t, s, key, token+1, time.Minute, false) })
	sends(t, w, "a refusal", map[string]int{"LeaseGrant": 1, "Txn": 1, "LeaseTimeToLive": 1}, func() { refused(t, s, key) })
	sends(t, w, "the next refusal", map[string]int{"LeaseKeepAlive": 1, "Txn": 1, "LeaseTimeToLive": 1}, func() { refused(t, s, key) })
	sends(t, w, "a look", map[string]int{"Range": 1, "LeaseTimeToLive": 1}, func() {
		if _, err := s.Inspect(t.Context(), key); err != nil {
			t.Error(err)
		}
	})
	sends(t, w, "another ttl", map[string]int{"Range": 1, "LeaseKeepAlive": 1, "LeaseGrant": 1, "Txn": 1, "LeaseRevoke": 2}, func() {
		renew(t, s, key, token, time.Hour, true)
		closed(t, s)
	})
	sends(t, w, "the next renewal", map[string]int{"Range": 1, "LeaseKeepAlive": 1}, func() { renew(t, s, key, token, time.Hour, true) })
	sends(t, w, "a break", map[string]int{"Range": 1, "Txn": 1, "LeaseRevoke": 1}, func() {
		if ok, err := s.Break(t.Context(), key); !ok || err != nil {
			t.Error(ok, err)
		}
		closed(t, s)
	})
}

func TestAPoolSendsNothingMoreThanABarePairAndKeepsTheLeaseAlive(t *testing.T) {
	e := one(t, etcdstore.WithPool(2))
	s, w := e.wired(t)
	warm(t, s, e, 2)
	for range 10 {
		sends(t, w, "a pair", map[string]int{"Txn": 2, "LeaseKeepAlive": 1}, func() {
			release(t, s, key, granted(t, s, key, time.Minute), true)
		})
	}
	held := granted(t, s, key, time.Minute)
	sends(t, w, "a refusal", map[string]int{"Txn": 1, "LeaseKeepAlive": 1, "LeaseTimeToLive": 1}, func() { refused(t, s, key) })
	release(t, s, key, held, true)
	closed(t, s)
	if left := leases(t, e.raw(t)); len(left) != 0 {
		t.Errorf("leases %v after Close", left)
	}
}

// warm makes the store fill its pool with n leases of a minute. Once the surplus one
// is revoked, the pool is full.
func warm(t testing.TB, s *etcdstore.Store, e *engine, n int) {
	t.Helper()
	raw := e.raw(t)
	token := granted(t, s, "warm", time.Minute)
	leasesBecome(t, raw, n+1)
	release(t, s, "warm", token, true)
	leasesBecome(t, raw, n)
}

func leasesBecome(t testing.TB, c *clientv3.Client, n int) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); len(leases(t, c)) != n; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("leases %v, want %d", leases(t, c), n)
		}
	}
}

func TestAPoolIsFilledAheadForThoseWhoHold(t *testing.T) {
	e := one(t, etcdstore.WithPool(3))
	s, w := e.wired(t)
	warm(t, s, e, 3)
	sends(t, w, "three acquisitions", map[string]int{"Txn": 3, "LeaseKeepAlive": 3}, func() {
		for i := range 3 {
			granted(t, s, strconv.Itoa(i), time.Minute)
		}
	})
	granted(t, s, "one more", time.Minute)
	leasesBecome(t, e.raw(t), 3+1+3) // held, and ahead again
}

func TestAPoolWhoseLeasesAreGoneIsNoFault(t *testing.T) {
	e := one(t, etcdstore.WithPool(2))
	s := e.store(t)
	warm(t, s, e, 2)
	raw := e.raw(t)
	for _, l := range leases(t, raw) {
		if _, err := raw.Revoke(t.Context(), l.ID); err != nil {
			t.Fatal(err)
		}
	}
	token := granted(t, s, key, time.Minute)
	renew(t, s, key, token, time.Minute, true)
}

func TestAnUnusedPoolCostsNothing(t *testing.T) {
	e := one(t, etcdstore.WithPool(2))
	s, w := e.wired(t)
	token := granted(t, s, key, 2*time.Second)
	raw := e.raw(t)
	leasesBecome(t, raw, 3)
	release(t, s, key, token, true)
	leasesBecome(t, raw, 2)
	sends(t, w, "an unused pool", nil, func() { leasesBecome(t, raw, 0) })
}

// A key that its holder abandoned would live on for as long as a neighbour under the
// same lease renews.
func TestALeaseCarriesOneKeyAtMost(t *testing.T) {
	for name, opts := range map[string][]etcdstore.Option{"alone": nil, "pool": {etcdstore.WithPool(3)}} {
		t.Run(name, func(t *testing.T) {
			e := one(t, opts...)
			s, raw := e.store(t), e.raw(t)
			done := make(chan struct{})
			var wg sync.WaitGroup
			for i := range 6 {
				wg.Go(func() {
					for n := range 30 {
						g, err := s.Acquire(context.Background(), strconv.Itoa(i+n%2), time.Minute)
						if err != nil {
							t.Error(err)
						}
						if g.OK {
							if _, err := s.Release(context.Background(), strconv.Itoa(i+n%2), g.Token); err != nil {
								t.Error(err)
							}
						}
					}
				})
			}
			go func() { wg.Wait(); close(done) }()
			looks := 0
			for running := true; running; looks++ {
				for _, l := range leases(t, raw) {
					answer, err := raw.TimeToLive(t.Context(), l.ID, clientv3.WithAttachedKeys())
					if err != nil {
						t.Fatal(err)
					}
					if len(answer.Keys) > 1 {
						t.Fatalf("lease %x carries %q", l.ID, answer.Keys)
					}
				}
				select {
				case <-done:
					running = false
				default:
				}
			}
			if looks < 3 {
				t.Errorf("%d looks only", looks)
			}
		})
	}
}

func TestTheClustersMinimumIsLearnedOnce(t *testing.T) {
	t.Parallel()
	e := on(t, start(t, 1, etcdserver.Ordinary)) // no lease is below 2 s
	s, w := e.wired(t)
	began := time.Now()
	token := granted(t, s, key, time.Second)
	if left := refused(t, s, key).RetryAfter; left+time.Since(began) <= time.Second || left > 3*time.Second {
		t.Errorf("retry after %v; the lease lasts for 2 s", left)
	}
	closed(t, s)
	for range 3 {
		sends(t, w, "a renewal", map[string]int{"Range": 1, "LeaseKeepAlive": 1}, func() { renew(t, s, key, token, time.Second, true) })
	}
	other, seen := e.wired(t)
	renew(t, other, key, token, time.Second, true) // it moves the key once, to learn
	closed(t, other)
	sends(t, seen, "a renewal", map[string]int{"Range": 1, "LeaseKeepAlive": 1}, func() { renew(t, other, key, token, time.Second, true) })
}
