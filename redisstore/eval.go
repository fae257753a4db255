package redisstore

import (
	"context"
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
// A client does not return when ctx is cancelled: once it has sent a request, it waits
// for its own timeouts. So a call runs in a goroutine that can be left behind. That
// costs nearly as much as a round trip to a server nearby. A client that minds
// deadlines is spared it while the server answers promptly: the caller itself does the
// call, under a short deadline. If that was too short, the request is sent again the
// other way. Every script can be sent again.
func (s *Store) eval(ctx context.Context, script *redis.Script, keys []string, args ...any) (any, error) {
	if s.mindful && s.prompt.Load() {
		short := impatient{ctx, time.Now().Add(patience)}
		reply, err := s.run(short, script, keys, args)
		if err == nil || !short.over() || ctx.Err() != nil {
			return reply, err
		}
	}
	return detached(ctx, &s.tasks, func() (any, error) { return s.run(ctx, script, keys, args) })
}

// run runs script and notes whether the server was prompt.
func (s *Store) run(ctx context.Context, script *redis.Script, keys []string, args []any) (any, error) {
	begin := time.Now()
	reply, err := script.Run(ctx, s.client, keys, args...).Result()
	if prompt := time.Since(begin) < promptly; prompt != s.prompt.Load() {
		s.prompt.Store(prompt)
	}
	return reply, err
}

// mindsDeadlines reports whether a call of client ends at the deadline of its context.
func mindsDeadlines(client redis.UniversalClient) bool {
	switch c := client.(type) {
	case *redis.Client:
		return c.Options().ContextTimeoutEnabled
	case *redis.ClusterClient:
		return c.Options().ContextTimeoutEnabled
	}
	return false
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

// impatient is a context with an earlier deadline, and no timer: the client sets the
// deadline on its connection. A timer that is due before all others interrupts the
// runtime's wait for the network each time it is set, which a hand-off would feel.
//
// Without a timer nobody who waits already hears of the end, but who asks later does:
// the client, before it would try again.
type impatient struct {
	context.Context
	until time.Time
}

func (c impatient) Deadline() (time.Time, bool) {
	if end, ok := c.Context.Deadline(); ok && end.Before(c.until) {
		return end, true
	}
	return c.until, true
}

func (c impatient) over() bool { return !time.Now().Before(c.until) }

func (c impatient) Done() <-chan struct{} {
	if c.over() {
		return past
	}
	return c.Context.Done()
}

func (c impatient) Err() error {
	if err := c.Context.Err(); err != nil || !c.over() {
		return err
	}
	return context.DeadlineExceeded
}

// past is closed.
var past = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()
