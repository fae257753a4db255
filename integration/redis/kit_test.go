package redis_test

import (
	"testing"

	"github.com/lockfx/lockfx/integration/proxy"
	"github.com/lockfx/lockfx/integration/redisserver"
	"github.com/lockfx/lockfx/storetest"
)

func TestKitOverOneServer(t *testing.T) {
	servers := []*redisserver.Server{single(t)}
	storetest.Run(t, func() (*storetest.Harness, error) {
		e, err := enter(servers, false)
		if err != nil {
			return nil, err
		}
		return e.harness(proxy.BlackHole)
	})
}

func TestKitOverACluster(t *testing.T) {
	cluster, err := redisserver.StartCluster(t.Context(), 3)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Stop)
	storetest.Run(t, func() (*storetest.Harness, error) {
		e, err := enter(cluster.Nodes, true)
		if err != nil {
			return nil, err
		}
		return e.harness(proxy.Drop)
	})
}
