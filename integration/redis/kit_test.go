package redis_test

import (
	"testing"

	"github.com/lockfx/lockfx/integration/proxy"
	"github.com/lockfx/lockfx/integration/redisserver"
	"github.com/lockfx/lockfx/storetest"
)

func TestKitOverOneServer(t *testing.T) { kit(t, proxy.BlackHole, false, single(t)) }

func TestKitOverACluster(t *testing.T) {
	cluster, err := redisserver.StartCluster(t.Context(), 3)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Stop)
	kit(t, proxy.Drop, true, cluster.Nodes...)
}

func kit(t *testing.T, cut proxy.Fault, mindful bool, servers ...*redisserver.Server) {
	t.Helper()
	storetest.Run(t, func() (*storetest.Harness, error) {
		e, err := enter(servers...)
		if err != nil {
			return nil, err
		}
		e.mindful = mindful
		return e.harness(cut)
	})
}
