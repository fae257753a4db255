package redisstore

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// promptly is how fast an answer must come for the next one to be waited for by
	// the caller itself.
	promptly = 25 * time.Millisecond
	// patience is how long the first attempt may take. Each further one may take half as
	// long again, until one would take longer than longest: that one is left to the
	// client's own timeouts.
	patience = 100 * time.Millisecond
	longest  = 2 * time.Second
	// elsewhere is how long another connection is looked for after one that broke or that
	// leads to a replica.
	elsewhere = time.Second
	// lookAgain is between two looks.
	lookAgain = 10 * time.Millisecond
)

// asking sends a request. again says that an earlier attempt has, or may have, sent it too.
type asking[T any] func(ctx context.Context, again bool) (T, error)

// ask returns the answer to a request, which may be sent more than once.
//
// A connection that is dead does not show it: nothing comes any more. So an attempt that
// takes too long is given up for one on another connection; only the last one's answer
// counts. So is, for a while, one whose connection breaks or leads to a replica.
func ask[T any](ctx context.Context, s *Store, send asking[T]) (T, error) {
	begun, again := time.Now(), false
	for wait := patience; ; again = true {
		value, late, err := attempt(ctx, s, wait, again, send)
		switch {
		case err == nil || ctx.Err() != nil:
			return value, err
		case late && wait < longest:
			wait += wait / 2
		case late: // at the end of ctx, whose timer may not have run yet
			pause(ctx, lookAgain)
			return value, err
		case !broke(err) && !fromReplica(err) || time.Since(begun) > elsewhere || !pause(ctx, lookAgain):
			return value, err
		}
	}
}

// broke reports whether a connection that was open has ended without an answer. A server
// that can't be reached is another matter: the client has tried that more than once.
func broke(err error) bool {
	var failed *net.OpError
	return errors.Is(err, io.EOF) || errors.As(err, &failed) && failed.Op != "dial"
}

// fromReplica reports whether a replica refused to write. Before Redis 7 the word stands
// inside of the error of a script.
func fromReplica(err error) bool { return refused(err) && strings.Contains(err.Error(), "READONLY") }

// attempt sends a request once, as far as the store is concerned: the client may send it
// again when its connection breaks. It reports whether it gave up after wait.
//
// A client does not return when ctx is cancelled: once it has sent a request, it waits
// for its own timeouts. So a call runs in a goroutine that can be left behind, which
// costs more than a round trip to a server nearby. A client that minds deadlines is spared
// it while the server answers promptly: the caller itself does the call.
func attempt[T any](ctx context.Context, s *Store, wait time.Duration, again bool, send asking[T]) (T, bool, error) {
	if s.mindful && !again && s.prompt.Load() {
		begun := time.Now()
		short := impatient{ctx, begun.Add(wait)}
		value, err := send(short, again)
		s.note(begun)
		return value, err != nil && over(short), err
	}
	limited, cancel := ctx, context.CancelFunc(func() {})
	if wait < longest {
		limited, cancel = context.WithTimeout(ctx, wait)
	}
	defer cancel()
	type answer struct {
		value T
		err   error
	}
	answered := make(chan answer, 1)
	s.tasks.Go(func() {
		begun := time.Now()
		value, err := send(limited, again)
		s.note(begun)
		answered <- answer{value, err}
	})
	select {
	case a := <-answered:
		return a.value, a.err != nil && over(limited), a.err
	case <-limited.Done():
		var none T
		return none, true, context.Cause(limited)
	}
}

// note notes whether the server was prompt to answer a request.
func (s *Store) note(begun time.Time) {
	if prompt := time.Since(begun) < promptly; prompt != s.prompt.Load() {
		s.prompt.Store(prompt)
	}
}

// over reports whether ctx has ended, or is about to: the client, which sets the deadline
// on its connection, can see it pass before the timer of ctx does.
func over(ctx context.Context) bool {
	end, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(end)
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

// eval runs script in one round trip, or in two if the server does not know it yet.
func (s *Store) eval(ctx context.Context, script *redis.Script, keys []string, args ...any) (any, error) {
	return ask(ctx, s, func(ctx context.Context, _ bool) (any, error) {
		return script.Run(ctx, s.client, keys, args...).Result()
	})
}
