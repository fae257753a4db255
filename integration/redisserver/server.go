// Package redisserver runs Redis in the shapes that the tests need: one server, a
// replica of another, and a cluster. Nothing is kept on disk, so that a server which
// was killed comes back empty.
package redisserver

import (
	"cmp"
	"context"
	"os"
	"strconv"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/lockfx/lockfx/integration/server"
)

// program is the environment variable that names another program than redis-server,
// such as valkey-server or that of another version.
const program = "LOCKFX_REDIS_SERVER"

// Server is one redis-server.
type Server struct {
	port   int
	args   []string
	dir    string
	remove func()

	mu      sync.Mutex // guards process
	process *server.Process
}

// Start starts a server with additional arguments, such as "--replicaof".
func Start(ctx context.Context, args ...string) (*Server, error) {
	const attempts = 3 // another process may take the port meanwhile
	var s *Server
	var err error
	for range attempts {
		if s, err = start(ctx, args); err == nil {
			break
		}
	}
	return s, err
}

func start(ctx context.Context, args []string) (*Server, error) {
	ports, err := server.FreePorts(1)
	if err != nil {
		return nil, err
	}
	dir, remove, err := server.TempDir()
	if err != nil {
		return nil, err
	}
	s := &Server{port: ports[0], dir: dir, remove: remove}
	s.args = append([]string{
		"--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--dir", dir,
		"--save", "", "--appendonly", "no",
	}, args...)
	if err := s.launch(ctx); err != nil {
		remove()
		return nil, err
	}
	return s, nil
}

func (s *Server) launch(ctx context.Context) error {
	path, err := server.Find(cmp.Or(os.Getenv(program), "redis-server"))
	if err != nil {
		return err
	}
	client := s.Client()
	defer client.Close() //nolint:errcheck // it only asked
	p, err := server.Start(ctx, server.Command{
		Path: path, Args: s.args, Dir: s.dir,
		Ready: func(ctx context.Context) error { return client.Ping(ctx).Err() },
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.process = p
	return nil
}

// Process returns the running process.
func (s *Server) Process() *server.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process
}

// Addr returns the address of the server, which it keeps when it is restarted.
func (s *Server) Addr() string { return server.Loopback(s.port) }

// Client returns a new client that does not hide errors behind retries.
func (s *Server) Client() *redis.Client {
	return redis.NewClient(&redis.Options{Addr: s.Addr(), MaxRetries: -1})
}

// Restart kills the server, as a loss of power does, and starts it again, empty.
func (s *Server) Restart(ctx context.Context) error {
	s.Process().Kill()
	return s.launch(ctx)
}

// Stop ends the server and removes its folder. It may be called after the server was killed.
func (s *Server) Stop() {
	s.Process().Stop()
	s.remove()
}
