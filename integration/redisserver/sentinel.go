package redisserver

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/redis/go-redis/v9"

	"github.com/lockfx/lockfx/integration/server"
)

// SentinelName is what the sentinel calls the primary that it monitors.
const SentinelName = "primary"

// StartSentinel starts a sentinel that alone decides when the primary is down, and
// then promotes a replica of it.
func StartSentinel(ctx context.Context, primary *Server) (*Server, error) {
	ports, err := server.FreePorts(1)
	if err != nil {
		return nil, err
	}
	dir, remove, err := server.TempDir()
	if err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "sentinel.conf") // which the sentinel rewrites
	text := fmt.Sprintf(`port %d
bind 127.0.0.1
dir %s
sentinel monitor %[3]s 127.0.0.1 %d 1
sentinel down-after-milliseconds %[3]s 500
sentinel failover-timeout %[3]s 5000
`, ports[0], dir, SentinelName, primary.port)
	s := &Server{port: ports[0], dir: dir, remove: remove, args: []string{config, "--sentinel"}}
	if err = os.WriteFile(config, []byte(text), 0o600); err == nil {
		err = s.launch(ctx)
	}
	if err != nil {
		remove()
		return nil, err
	}
	return s, nil
}

// SentinelClient returns a new client of whatever server the sentinel calls primary.
func SentinelClient(sentinel *Server) *redis.Client {
	return redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: SentinelName, SentinelAddrs: []string{sentinel.Addr()},
	})
}
