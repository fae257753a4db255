package redisstore

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// In a cluster, a node that hangs costs no lease on another one.
func TestAHangingNodeHoldsNoOtherUp(t *testing.T) {
	nodes := map[string]*fakeServer{"fake:1": {takes: 5 * time.Millisecond}, "fake:2": new(fakeServer)}
	nodes["fake:2"].silent.Store(true)
	client := redis.NewClusterClient(&redis.ClusterOptions{
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return nodes[addr].dial(ctx, network, addr)
		},
		ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
			const middle = 8192
			return []redis.ClusterSlot{
				{Start: 0, End: middle - 1, Nodes: []redis.ClusterNode{{Addr: "fake:1"}}},
				{Start: middle, End: 16383, Nodes: []redis.ClusterNode{{Addr: "fake:2"}}},
			}, nil
		},
		Protocol: 2, DisableIdentity: true, ReadTimeout: time.Second, MaxRetries: -1, MaxRedirects: -1,
	})
	t.Cleanup(func() { _ = client.Close() })
	s, err := New(client)
	if err != nil {
		t.Fatal(err)
	}
	hanging, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	var all sync.WaitGroup
	var healthy, late int
	var mu sync.Mutex // guards healthy, late
	for n := range 100 {
		all.Go(func() {
			begun := time.Now()
			if ok, _ := s.Renew(hanging, fmt.Sprint(n), 1, time.Minute); !ok {
				return // of the node that hangs
			}
			mu.Lock()
			defer mu.Unlock()
			healthy++
			if time.Since(begun) > 400*time.Millisecond {
				late++
			}
		})
	}
	all.Wait()
	cancel()
	if healthy < 20 || late > 0 {
		t.Errorf("of 100 renewals %d succeeded, %d of them late; want about half, in time", healthy, late)
	}
	if err := s.tasks.Wait(t.Context()); err != nil {
		t.Error(err)
	}
}
