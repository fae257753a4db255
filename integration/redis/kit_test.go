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

// kit runs the kit as a user who may do what the README lists, and nothing else.
func kit(t *testing.T, cut proxy.Fault, mindful bool, servers ...*redisserver.Server) {
	t.Helper()
	storetest.Run(t, func() (*storetest.Harness, error) {
		e, err := enter(servers...)
		if err != nil {
			return nil, err
		}
		e.mindful, e.user = mindful, "locker"
		for _, s := range servers {
			if err := e.permit(s); err != nil {
				return nil, err
			}
		}
		return e.harness(cut)
	})
}
