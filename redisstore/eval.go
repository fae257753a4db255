package redisstore

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// undoWithin bounds the undoing of an acquisition.
	undoWithin = 10 * time.Second
	// undoGrace is how long an acquisition whose ctx is over waits for its undoing,
	// so that ordinarily the key is free again when it returns.
	undoGrace = 50 * time.Millisecond
	// undoAgain is the pause between two attempts.
	undoAgain = 100 * time.Millisecond
	// tombstone is how long a request may be on its way after its undoing.
	tombstone = 5 * time.Minute
)

// eval runs script in one round trip, or in two if the server does not know it yet.
// It returns when ctx ends, which the client alone does not do: once it has sent a
// request, it waits for its own timeouts.
func (s *Store) eval(ctx context.Context, script *redis.Script, keys []string, args ...any) (any, error) {
	return detached(ctx, &s.tasks, func() (any, error) {
		return script.Run(ctx, s.client, keys, args...).Result()
	})
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

// undo ends the acquisition of tag, whether its request arrived or is still on its
// way. It returns when that is done, or after undoGrace; the attempts go on for
// undoWithin.
func (s *Store) undo(ctx context.Context, lock, tag string) {
	done := make(chan struct{})
	s.tasks.run(func() {
		defer close(done)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoWithin)
		defer cancel()
		for {
			_, err := s.eval(ctx, undoScript, []string{lock, undoneName(lock, tag)}, tag, tombstone.Milliseconds(), s.memory)
			var refused redis.Error
			if err == nil || errors.As(err, &refused) || !pause(ctx, undoAgain) {
				return // done, or the server won't, or it is too late
			}
		}
	})
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoGrace)
	defer cancel()
	select {
	case <-done:
	case <-grace.Done():
	}
}

// pause waits for d and reports whether ctx is still alive.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
