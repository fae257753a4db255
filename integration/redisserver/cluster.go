package redisserver

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfx/lockfx/integration/server"
)

// slots is how many slots a cluster of Redis has.
const slots = 16384

// Cluster is a cluster of primaries that share the slots evenly.
type Cluster struct {
	Nodes []*Server
	buses []int // the ports between the nodes
}

// StartCluster starts n nodes and returns once each sees the whole cluster.
func StartCluster(ctx context.Context, n int) (*Cluster, error) {
	c := &Cluster{}
	if err := c.start(ctx, n); err != nil {
		c.Stop()
		return nil, fmt.Errorf("start a cluster: %w", err)
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context, n int) error {
	var err error
	if c.buses, err = server.FreePorts(n); err != nil {
		return err
	}
	for _, bus := range c.buses {
		// By default the bus is 10,000 above the port, which need not be a port.
		s, err := Start(ctx, "--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--cluster-port", strconv.Itoa(bus))
		if err != nil {
			return err
		}
		c.Nodes = append(c.Nodes, s)
	}
	if err := c.join(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		err := c.whole(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// join gives every node its slots and introduces it to the first.
func (c *Cluster) join(ctx context.Context) error {
	first := c.Nodes[0]
	client := first.Client()
	defer client.Close() //nolint:errcheck // it only asked
	n := len(c.Nodes)
	for i, s := range c.Nodes {
		node := s.Client()
		err := errors.Join(
			node.Do(ctx, "cluster", "set-config-epoch", i+1).Err(),
			node.ClusterAddSlotsRange(ctx, i*slots/n, (i+1)*slots/n-1).Err(),
			client.Do(ctx, "cluster", "meet", "127.0.0.1", s.port, c.buses[i]).Err(),
			node.Close(),
		)
		if err != nil {
			return err
		}
	}
	return nil
}

// whole returns nil if every node knows of every other and finds all slots served.
func (c *Cluster) whole(ctx context.Context) error {
	for _, s := range c.Nodes {
		client := s.Client()
		info, err := client.ClusterInfo(ctx).Result()
		_ = client.Close()
		if err != nil {
			return err
		}
		known := fmt.Sprintf("cluster_known_nodes:%d\r\n", len(c.Nodes))
		if !strings.Contains(info, "cluster_state:ok\r\n") || !strings.Contains(info, known) {
			return fmt.Errorf("%s is not ready: %s", s.Addr(), info)
		}
	}
	return nil
}

// Addrs returns the addresses of the nodes.
func (c *Cluster) Addrs() []string {
	addrs := make([]string, len(c.Nodes))
	for i, s := range c.Nodes {
		addrs[i] = s.Addr()
	}
	return addrs
}

// Client returns a new client of the whole cluster.
func (c *Cluster) Client() *redis.ClusterClient {
	return redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs()})
}

// Stop ends all nodes.
func (c *Cluster) Stop() {
	for _, s := range c.Nodes {
		s.Stop()
	}
}
