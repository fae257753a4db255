package redis_test

import (
	"context"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
)

// stats returns a figure from the section of INFO, such as "total_commands_processed".
func stats(t *testing.T, c *redis.Client, section, name string) string {
	t.Helper()
	info, err := c.Info(t.Context(), section).Result()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+":"); ok {
			return value
		}
	}
	return ""
}

// scriptCalls returns how many scripts the server has run.
func scriptCalls(t *testing.T, c *redis.Client) (n int) {
	t.Helper()
	for _, name := range []string{"cmdstat_evalsha", "cmdstat_eval"} {
		calls, _, _ := strings.Cut(strings.TrimPrefix(stats(t, c, "commandstats", name), "calls="), ",")
		if calls == "" {
			continue
		}
		more, err := strconv.Atoi(calls)
		if err != nil {
			t.Fatal(err)
		}
		n += more
	}
	return n
}

// subscriptions returns how many connections are subscribed.
func subscriptions(t *testing.T, c *redis.Client) int {
	t.Helper()
	list, err := c.Do(t.Context(), "client", "list", "type", "pubsub").Text()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(list, "\n")
}

// recorder is a hook that keeps what a client sends.
type recorder struct {
	mu       sync.Mutex // guards commands
	commands [][]any
}

var _ redis.Hook = (*recorder)(nil)

func (r *recorder) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (r *recorder) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		r.add(cmd)
		return next(ctx, cmd)
	}
}

func (r *recorder) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		r.add(cmds...)
		return next(ctx, cmds)
	}
}

func (r *recorder) add(cmds ...redis.Cmder) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, cmd := range cmds {
		r.commands = append(r.commands, cmd.Args())
	}
}

func (r *recorder) take() [][]any {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.commands
	r.commands = nil
	return taken
}
