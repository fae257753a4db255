package etcdserver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/lockfx/lockfx/integration/server"
)

// Heartbeats are the intervals between the heartbeats of members.
const (
	Ordinary = 100 * time.Millisecond // as etcd has it; no lease is below 2 s then
	Quick    = 50 * time.Millisecond  // leases of 1 s are possible
)

// Cluster is one or more members.
type Cluster struct {
	Servers []*Server
	remove  []func()
}

// A Setting changes how members run.
type Setting func(*order)

// AuthToken makes members issue tokens as etcd's flag --auth-token says, which last for
// ttl if they are simple ones.
func AuthToken(kind string, ttl time.Duration) Setting {
	return func(o *order) { o.AuthToken, o.AuthTTL = kind, uint(ttl.Seconds()) }
}

// Start starts a cluster of n members. A port can be taken between its choice and its
// use, so the start is tried again with others.
func Start(ctx context.Context, n int, heartbeat time.Duration, settings ...Setting) (*Cluster, error) {
	const attempts = 3
	var faults []error
	for range attempts {
		c, err := start(ctx, n, heartbeat, settings)
		if err == nil {
			return c, nil
		}
		faults = append(faults, err)
	}
	return nil, errors.Join(faults...)
}

func start(ctx context.Context, n int, heartbeat time.Duration, settings []Setting) (*Cluster, error) {
	ports, err := server.FreePorts(2 * n)
	if err != nil {
		return nil, err
	}
	c := &Cluster{}
	var orders []order
	var names []string
	for i := range n {
		o := order{
			Name:   fmt.Sprintf("member%d", i+1),
			Client: server.Loopback(ports[2*i]), Peer: server.Loopback(ports[2*i+1]),
			Heartbeat: uint(heartbeat.Milliseconds()),
		}
		for _, set := range settings {
			set(&o)
		}
		orders, names = append(orders, o), append(names, o.Name+"=http://"+o.Peer)
	}
	for _, o := range orders {
		dir, remove, err := server.TempDir()
		if err != nil {
			c.Stop()
			return nil, err
		}
		o.Cluster = strings.Join(names, ",")
		c.Servers, c.remove = append(c.Servers, newServer(dir, o)), append(c.remove, remove)
	}
	if err := c.each(func(s *Server) error { return s.launch(ctx) }); err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}

// each does something to all members at once: one alone is not ready.
func (c *Cluster) each(do func(*Server) error) error {
	faults := make([]error, len(c.Servers))
	var wg sync.WaitGroup
	for i, s := range c.Servers {
		wg.Go(func() { faults[i] = do(s) })
	}
	wg.Wait()
	return errors.Join(faults...)
}

// Addrs returns the addresses for clients.
func (c *Cluster) Addrs() (addrs []string) {
	for _, s := range c.Servers {
		addrs = append(addrs, s.Addr())
	}
	return addrs
}

// Leader returns the member that the cluster follows.
func (c *Cluster) Leader(ctx context.Context) (*Server, error) {
	for ; ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
		for _, s := range c.Servers {
			if leads, err := s.leads(ctx); err == nil && leads {
				return s, nil
			}
		}
	}
	return nil, fmt.Errorf("the cluster has no leader: %w", context.Cause(ctx))
}

func (s *Server) leads(ctx context.Context) (bool, error) {
	client, err := s.Client()
	if err != nil {
		return false, err
	}
	defer client.Close() //nolint:errcheck // it only asked
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	status, err := client.Status(ctx, s.Addr())
	if err != nil {
		return false, err
	}
	return status.Leader != 0 && status.Leader == status.Header.MemberId, nil
}

// Restart kills all members, and starts them on what they kept.
func (c *Cluster) Restart(ctx context.Context) error {
	return c.each(func(s *Server) error { return s.Restart(ctx) })
}

// Stop ends the members and removes their folders. It may be called after some were
// killed.
func (c *Cluster) Stop() {
	_ = c.each(func(s *Server) error {
		if p := s.Process(); p != nil {
			p.Kill() // nothing of it is needed any more
		}
		return nil
	})
	for _, remove := range c.remove {
		remove()
	}
}
