package redisstore

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// promptly is how fast an answer must come for the next one to be waited for by
	// the caller itself.
	promptly = 25 * time.Millisecond
	// patience is how long the caller itself waits, and so how late after the end of
	// its ctx it can return.
	patience = 100 * time.Millisecond
)

// eval runs script in one round trip, or in two if the server does not know it yet.
//
// The client does not return when ctx ends: once it has sent a request, it waits for
// its own timeouts. So a call runs in a goroutine that can be left behind. That costs
// as much as half a round trip, so while the server answers promptly, the caller
// itself does the call, but only waits for a moment. If that was too short, the
// request is sent again the other way. Every script can be sent again.
func (s *Store) eval(ctx context.Context, script *redis.Script, keys []string, args ...any) (any, error) {
	if s.prompt.Load() {
		reply, err := s.run(ctx, s.hasty(), script, keys, args)
		if ctx.Err() != nil || !timedOut(err) {
			return reply, err
		}
	}
	return detached(ctx, &s.tasks, func() (any, error) { return s.run(ctx, s.client, script, keys, args) })
}

// run runs script and notes whether the server was prompt.
func (s *Store) run(ctx context.Context, client redis.Scripter, script *redis.Script, keys []string, args []any) (any, error) {
	begin := time.Now()
	reply, err := script.Run(ctx, client, keys, args...).Result()
	if prompt := s.hasty != nil && time.Since(begin) < promptly; prompt != s.prompt.Load() {
		s.prompt.Store(prompt)
	}
	return reply, err
}

func timedOut(err error) bool {
	var network net.Error
	return errors.As(err, &network) && network.Timeout()
}

// hastyClient returns what makes, when it is first needed, a client that shares all
// with client but waits for no longer than patience. It is nil for a client that
// offers no such thing.
func hastyClient(client redis.UniversalClient) func() *redis.Client {
	single, ok := client.(*redis.Client)
	if !ok {
		return nil
	}
	return sync.OnceValue(func() *redis.Client { return single.WithTimeout(patience) })
}

// detached returns what call returns, or the end of ctx if that comes first. The
// call is then left to itself, as one of the tasks.
func detached[T any](ctx context.Context, tasks *tasks, call func() (T, error)) (T, error) {
	if ctx.Done() == nil {
		return call()
	}
	type answer struct {
		value T
		err   error
	}
	answered := make(chan answer, 1)
	tasks.run(func() {
		value, err := call()
		answered <- answer{value, err}
	})
	select {
	case a := <-answered:
		return a.value, a.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}
