package redis_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/integration/redisserver"
	"github.com/lockfx/lockfx/redisstore"
)

// While a cluster moves a slot, the leases in it are kept and given back, before and after
// their record has moved. Nobody gets a new one.
func TestLeasesOutliveTheMoveOfTheirSlot(t *testing.T) {
	cluster, err := redisserver.StartCluster(t.Context(), 2)
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
	defer s.Close(context.Background()) //nolint:errcheck // it undoes what was refused
	const record = "lockfx:{nightly {1%7D}"
	slot := client.ClusterKeySlot(t.Context(), record).Val()
	nodes := [2]*redis.Client{cluster.Nodes[0].Client(), cluster.Nodes[1].Client()}
	var ids [2]string
	for i, node := range nodes {
		defer node.Close() //nolint:errcheck // a test
		ids[i] = node.Do(t.Context(), "cluster", "myid").Val().(string)
	}
	from, to := 0, 1
	if slot >= 8192 {
		from, to = 1, 0
	}
	do := func(node int, args ...any) {
		t.Helper()
		if err := nodes[node].Do(t.Context(), args...).Err(); err != nil {
			t.Fatal(args, err)
		}
	}
	for _, moved := range []bool{false, true} {
		token := granted(t, s, time.Hour)
		do(to, "cluster", "setslot", slot, "importing", ids[from])
		do(from, "cluster", "setslot", slot, "migrating", ids[to])
		if moved {
			host, port, _ := strings.Cut(cluster.Nodes[to].Addr(), ":")
			do(from, "migrate", host, port, record, 0, 1000)
		}
		if ok, err := s.Renew(t.Context(), key, token, time.Minute); !ok || err != nil {
			t.Errorf("moved %v: renew: %v, %v; want true", moved, ok, err)
		}
		if ok, err := s.Release(t.Context(), key, token); !ok || err != nil {
			t.Errorf("moved %v: release: %v, %v; want true", moved, ok, err)
		}
		if ok, err := s.Release(t.Context(), key, token); ok || !errors.Is(err, lockfx.ErrStore) {
			t.Errorf("moved %v: release again: %v, %v; want an error, since it may be a repetition", moved, ok, err)
		}
		if g, err := s.Acquire(t.Context(), key, time.Minute); g.OK || !errors.Is(err, lockfx.ErrStore) || !strings.Contains(err.Error(), "TRYAGAIN") {
			t.Errorf("moved %v: acquire: %+v, %v; want an error that says TRYAGAIN", moved, g, err)
		}
		for _, node := range []int{from, to} {
			do(node, "cluster", "setslot", slot, "stable")
		}
		if moved {
			return
		}
	}
}
