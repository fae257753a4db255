// Package pgserver runs PostgreSQL, and PgBouncer in front of it, for the tests.
package pgserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lockfx/lockfx/integration/server"
)

// account is who the servers run as when the tests run as root, which they refuse.
const account = "postgres"

// Server is one postgres, which keeps its data when it is restarted. Every user of
// the loopback interface is its superuser.
type Server struct {
	port   int
	args   []string
	dir    string
	remove func()

	mu      sync.Mutex // guards process
	process *server.Process
}

// Start makes a cluster of databases and starts a server on it, with additional
// arguments, such as "-cdefault_transaction_isolation=serializable".
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
	return fill(ctx, args, func(s *Server) error {
		return s.run(ctx, "initdb", "-D", s.data(), "-U", account, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	})
}

// Standby starts a server that follows this one and takes no writes.
func (s *Server) Standby(ctx context.Context) (*Server, error) {
	return fill(ctx, nil, func(standby *Server) error {
		return standby.run(ctx, "pg_basebackup", "-d", URL(s.Addr()), "-D", standby.data(), "-R", "-X", "stream", "-c", "fast", "--no-sync")
	})
}

// fill makes the files of a server and starts it.
func fill(ctx context.Context, args []string, files func(*Server) error) (*Server, error) {
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
		"-D", s.data(), "-p", strconv.Itoa(s.port), "-h", "127.0.0.1", "-k", dir,
	}, args...)
	if err = files(s); err == nil {
		err = s.launch(ctx)
	}
	if err != nil {
		remove()
		return nil, err
	}
	return s, nil
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// find returns the path of a program of PostgreSQL, which Debian keeps out of PATH.
func find(program string) (string, error) {
	return server.Find(program, "/usr/lib/postgresql/*/bin/"+program, "/usr/sbin/"+program)
}

// run runs a program to its end.
func (s *Server) run(ctx context.Context, program string, args ...string) error {
	path, err := find(program)
	if err != nil {
		return err
	}
	p, err := server.Start(ctx, server.Command{
		Path: path, Dir: s.dir, User: account, Args: args,
		Ready: func(context.Context) error { return nil },
	})
	if err != nil {
		return err
	}
	select {
	case <-p.Exited():
		return nil
	case <-ctx.Done():
		p.Kill()
		return context.Cause(ctx)
	}
}

func (s *Server) launch(ctx context.Context) error {
	path, err := find("postgres")
	if err != nil {
		return err
	}
	p, err := server.Start(ctx, server.Command{Path: path, Args: s.args, Dir: s.dir, User: account, Ready: s.ping})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.process = p
	return nil
}

func (s *Server) ping(ctx context.Context) error { return s.Do(ctx, "SELECT 1") }

// Do executes SQL on a connection of its own.
func (s *Server) Do(ctx context.Context, sql string) error {
	c, err := pgx.Connect(ctx, URL(s.Addr()))
	if err != nil {
		return err
	}
	_, err = c.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol)
	return errors.Join(err, c.Close(ctx))
}

// Addr returns the address of the server, which it keeps when it is restarted.
func (s *Server) Addr() string { return server.Loopback(s.port) }

// URL returns the connection string for a server, or what stands in front of it, at
// addr.
func URL(addr string) string {
	return fmt.Sprintf("postgres://%s@%s/postgres?sslmode=disable", account, addr)
}

// Process returns the running process.
func (s *Server) Process() *server.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process
}

// Restart kills the server, as a loss of power does, and starts it again on what is
// on its disk.
func (s *Server) Restart(ctx context.Context) error {
	s.Kill()
	return s.Revive(ctx)
}

// Kill ends the server at once, as a loss of power does: with the processes that
// serve its connections, which would go on for a moment.
func (s *Server) Kill() {
	p := s.Process()
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", p.Pid()))
	p.Kill()
	if err != nil {
		return // a system that does not tell
	}
	for _, child := range strings.Fields(string(children)) {
		pid, err := strconv.Atoi(child)
		if err != nil {
			continue
		}
		if process, err := os.FindProcess(pid); err == nil {
			_ = process.Kill() // it may have ended by itself
		}
	}
}

// Revive starts a killed server again. It has to wait for the processes that served
// the old one's connections.
func (s *Server) Revive(ctx context.Context) error {
	const attempts, pause = 50, 100 * time.Millisecond
	var err error
	for range attempts {
		if err = s.launch(ctx); err == nil {
			return nil
		}
		time.Sleep(pause)
	}
	return err
}

// Stop ends the server and removes its folder. It may be called after the server was
// killed.
func (s *Server) Stop() {
	s.Process().Stop()
	s.remove()
}
