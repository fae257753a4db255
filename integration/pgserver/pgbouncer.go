package pgserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/jackc/pgx/v5"

	"github.com/lockfx/lockfx/integration/server"
)

// PgBouncer is a pooler in front of a server.
type PgBouncer struct {
	port    int
	process *server.Process
	remove  func()
}

// StartPgBouncer starts a pooler in transaction mode in front of a server: a client
// has a connection of the server for one transaction at a time.
func StartPgBouncer(ctx context.Context, to *Server) (*PgBouncer, error) {
	path, err := find("pgbouncer")
	if err != nil {
		return nil, err
	}
	ports, err := server.FreePorts(1)
	if err != nil {
		return nil, err
	}
	dir, remove, err := server.TempDir()
	if err != nil {
		return nil, err
	}
	b := &PgBouncer{port: ports[0], remove: remove}
	config := filepath.Join(dir, "pgbouncer.ini")
	if err := os.WriteFile(config, []byte(b.config(to)), 0o600); err != nil {
		remove()
		return nil, err
	}
	b.process, err = server.Start(ctx, server.Command{Path: path, Args: []string{config}, Dir: dir, User: account, Ready: b.ping})
	if err != nil {
		remove()
		return nil, err
	}
	return b, nil
}

func (b *PgBouncer) config(to *Server) string {
	return fmt.Sprintf(`[databases]
postgres = host=127.0.0.1 port=%d dbname=postgres user=%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 10
`, to.port, account, b.port)
}

func (b *PgBouncer) ping(ctx context.Context) error {
	c, err := pgx.Connect(ctx, URL(b.Addr()))
	if err != nil {
		return err
	}
	return errors.Join(c.Ping(ctx), c.Close(ctx))
}

// Addr returns the address of the pooler.
func (b *PgBouncer) Addr() string { return server.Loopback(b.port) }

// Stop ends the pooler.
func (b *PgBouncer) Stop() {
	b.process.Stop()
	b.remove()
}
