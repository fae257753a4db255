package etcd_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/integration/etcdserver"
)

func ready(t testing.TB, m *etcdserver.Server) error {
	t.Helper()
	client, err := m.Client()
	if err != nil {
		return err
	}
	defer client.Close() //nolint:errcheck // it only asked
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		attempt, end := context.WithTimeout(ctx, time.Second)
		_, err := client.Get(attempt, "x")
		end()
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
}

func leader(t testing.TB, c *etcdserver.Cluster) *etcdserver.Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	m, err := c.Leader(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestAHoldOutlivesItsLeader(t *testing.T) {
	t.Parallel()
	cluster := start(t, 3, etcdserver.Ordinary)
	e := on(t, cluster)
	s := e.store(t)
	token := granted(t, s, key, 20*time.Second)
	leader(t, cluster).Process().Kill()
	renew(t, s, key, token, 20*time.Second, true) // it waits for the election
	refused(t, s, key)
	release(t, s, key, token, true)
	if next := granted(t, s, key, time.Minute); next <= token { // T02: a promoted member knows all that was granted
		t.Errorf("token %v after %v", next, token)
	}
}

// A member that is stuck, say on its disk, keeps connections open and answers
// nobody. Requests go on to the others.
func TestAHoldOutlivesAStuckLeader(t *testing.T) {
	t.Parallel()
	cluster := start(t, 3, etcdserver.Ordinary)
	e := on(t, cluster)
	s := e.store(t)
	token := granted(t, s, key, 30*time.Second)
	stuck := leader(t, cluster)
	resume, err := stuck.Process().Pause()
	if err != nil {
		t.Fatal(err)
	}
	defer resume()
	deadline := time.Now().Add(20 * time.Second)
	for {
		ok, err := s.Renew(t.Context(), key, token, 30*time.Second)
		if err == nil && !ok {
			t.Fatal("the hold was lost")
		}
		if ok {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("not renewed in 20 s: %v", err)
		}
	}
	resume()
	if err := ready(t, stuck); err != nil {
		t.Fatal(err)
	}
	renew(t, s, key, token, 30*time.Second, true)
	refused(t, s, key)
}

func TestExclusionOutlivesLeaders(t *testing.T) {
	t.Parallel()
	cluster := start(t, 3, etcdserver.Ordinary)
	e := on(t, cluster)
	ctx, stop := context.WithCancel(context.Background())
	var inside, overlaps, holds, last atomic.Int64
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	for range 4 {
		s := e.store(t)
		wg.Go(func() {
			for ctx.Err() == nil {
				g, err := s.Acquire(ctx, key, 30*time.Second)
				if err != nil || !g.OK {
					continue // a leader is missing, or another holds
				}
				if inside.Add(1) > 1 || int64(g.Token) <= last.Swap(int64(g.Token)) {
					overlaps.Add(1)
				}
				holds.Add(1)
				inside.Add(-1)
				for { // until it is surely released
					ok, err := s.Release(context.Background(), key, g.Token)
					if ok || err == nil || lost(s, g.Token) {
						break
					}
				}
			}
		})
	}
	for range 3 {
		time.Sleep(300 * time.Millisecond)
		m := leader(t, cluster)
		m.Process().Kill()
		before := holds.Load()
		for deadline := time.Now().Add(45 * time.Second); holds.Load() < before+5; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("nobody was granted the key in 45 s after the loss of the leader")
			}
		}
		if err := m.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if overlaps.Load() > 0 {
		t.Errorf("%d overlaps in %d holds", overlaps.Load(), holds.Load())
	}
	t.Logf("%d holds over three leaders", holds.Load())
}

// lost reports whether a hold is surely over.
func lost(s lockfx.Store, token lockfx.Token) bool {
	ok, err := s.Renew(context.Background(), key, token, 30*time.Second)
	return err == nil && !ok
}
