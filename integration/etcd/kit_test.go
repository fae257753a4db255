package etcd_test

import (
	"context"
	"testing"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/etcdstore"
	"github.com/lockfx/lockfx/integration/etcdserver"
	"github.com/lockfx/lockfx/storetest"
)

// Each case has a member of its own, which it may restart.
func TestKitOverOneMember(t *testing.T) {
	storetest.RunParallel(t, func() (*storetest.Harness, error) {
		cluster, err := etcdserver.Start(context.Background(), 1, etcdserver.Quick)
		if err != nil {
			return nil, err
		}
		e, err := enter(cluster)
		if err != nil {
			cluster.Stop()
			return nil, err
		}
		e.opened = append([]func(){cluster.Stop}, e.opened...)
		h, err := e.harness()
		if err != nil {
			return nil, err
		}
		h.Restart = func() (lockfx.Store, error) {
			if err := cluster.Restart(context.Background()); err != nil {
				return nil, err
			}
			return e.open()
		}
		return h, nil
	})
}

func TestKitOverThreeMembers(t *testing.T) { kitOverACluster(t) }

func TestKitWithAPool(t *testing.T) { kitOverACluster(t, etcdstore.WithPool(3)) }

func kitOverACluster(t *testing.T, opts ...etcdstore.Option) {
	cluster := start(t, 3, etcdserver.Ordinary)
	storetest.RunParallel(t, func() (*storetest.Harness, error) {
		e, err := enter(cluster, opts...)
		if err != nil {
			return nil, err
		}
		h, err := e.harness()
		if err != nil {
			return nil, err
		}
		h.Late += time.Second // such a cluster has no lease of less than 2 s
		return h, nil
	})
}
