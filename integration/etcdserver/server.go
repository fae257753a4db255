package etcdserver

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/lockfx/lockfx/integration/server"
)

// Server is one member of etcd. Its methods are safe for concurrent use.
type Server struct {
	order order
	dir   string

	mu      sync.Mutex // guards what follows
	process *server.Process
}

// launch starts the process of the member. It does not wait for the cluster.
func (s *Server) launch(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	args, err := s.order.args()
	if err != nil {
		return err
	}
	p, err := server.Start(ctx, server.Command{Path: self, Args: args, Dir: s.dir, Ready: s.ready})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.process = p
	return nil
}

// ready returns nil once the member answers a read that needs a leader.
func (s *Server) ready(ctx context.Context) error {
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{s.Addr()}, Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: 20 * time.Millisecond, MaxDelay: 20 * time.Millisecond}})},
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, err = client.Get(ctx, "ready")
	return errors.Join(err, client.Close())
}

// Process returns the running process, or the last one.
func (s *Server) Process() *server.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process
}

// Addr returns the address for clients, which the member keeps when it is restarted.
func (s *Server) Addr() string { return s.order.Client }

// Client returns a new client of this member alone.
func (s *Server) Client() (*clientv3.Client, error) { return Client(s.Addr()) }

// Client returns a new client with ordinary settings, which does not log.
func Client(addrs ...string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: addrs, Logger: zap.NewNop()})
}

// Restart kills the member, as a loss of power does, and starts it on what it kept.
func (s *Server) Restart(ctx context.Context) error {
	s.Process().Kill()
	return s.launch(ctx)
}

// newServer makes the folders of a member that is not running yet.
func newServer(dir string, o order) *Server {
	o.Dir = filepath.Join(dir, o.Name)
	return &Server{order: o, dir: dir}
}
