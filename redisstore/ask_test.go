package redisstore

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// answers is a far side whose nth request takes a while, and then gets the answer n or an
// error.
type answers struct {
	begun time.Time
	takes func(n int) time.Duration
	fails func(n int) error

	mu       sync.Mutex // guards what follows
	arrivals []time.Duration
	repeated []bool
}

func (a *answers) send(_ context.Context, again bool) (int, error) {
	a.mu.Lock()
	a.arrivals, a.repeated = append(a.arrivals, time.Since(a.begun)), append(a.repeated, again)
	n := len(a.arrivals)
	a.mu.Unlock()
	time.Sleep(a.takes(n)) // as a client does, whose call does not mind its context
	if a.fails != nil {
		return 0, a.fails(n)
	}
	return n, nil
}

func asked(t *testing.T, a *answers, test func(ask func(context.Context) (int, error))) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := new(Store)
		a.begun = time.Now()
		test(func(ctx context.Context) (int, error) { return ask(ctx, s, a.send) })
		if err := s.tasks.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestASlowAnswerIsAskedForAgain(t *testing.T) {
	a := &answers{takes: func(n int) time.Duration {
		if n < 4 {
			return time.Minute // over a dead connection
		}
		return time.Millisecond
	}}
	asked(t, a, func(ask func(context.Context) (int, error)) {
		if n, err := ask(context.Background()); n != 4 || err != nil {
			t.Errorf("%d, %v; want the answer to the fourth request", n, err)
		}
	})
	if want := []time.Duration{0, 100 * time.Millisecond, 250 * time.Millisecond, 475 * time.Millisecond}; !slices.Equal(a.arrivals, want) {
		t.Errorf("requests left at %v, want %v", a.arrivals, want)
	}
	if want := []bool{false, true, true, true}; !slices.Equal(a.repeated, want) {
		t.Errorf("requests said whether they were sent before: %v, want %v", a.repeated, want)
	}
}

// The answer to a request that was given up does not count: a later one may still be on
// its way, and the server notes that for the last one alone.
func TestOnlyTheLastAnswerCounts(t *testing.T) {
	a := &answers{takes: func(int) time.Duration { return 130 * time.Millisecond }}
	asked(t, a, func(ask func(context.Context) (int, error)) {
		if n, err := ask(context.Background()); n != 2 || err != nil {
			t.Errorf("%d, %v; want the answer to the second request", n, err)
		}
	})
}

func TestACallEndsWithItsContext(t *testing.T) {
	a := &answers{takes: func(int) time.Duration { return time.Minute }}
	asked(t, a, func(ask func(context.Context) (int, error)) {
		reason := errors.New("the caller has had enough")
		ctx, cancel := context.WithTimeoutCause(context.Background(), time.Second, reason)
		defer cancel()
		if _, err := ask(ctx); !errors.Is(err, reason) || time.Since(a.begun) != time.Second {
			t.Errorf("%v after %v; want the end of the context after 1s", err, time.Since(a.begun))
		}
	})
}

// Without an end of its own a call is at last left to the client, and so ends with what
// the client says.
func TestACallWithoutAnEndEndsWithTheClients(t *testing.T) {
	gaveUp := errors.New("i/o timeout")
	a := &answers{takes: func(int) time.Duration { return 12 * time.Second }, fails: func(int) error { return gaveUp }}
	asked(t, a, func(ask func(context.Context) (int, error)) {
		if _, err := ask(context.Background()); !errors.Is(err, gaveUp) {
			t.Error(err)
		}
		if took := time.Since(a.begun); took > 20*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

type answerError string

func (e answerError) Error() string { return string(e) }
func (e answerError) RedisError()   {}

func TestAnotherServerThanAReplicaIsLookedForForASecond(t *testing.T) {
	readonly := answerError("READONLY You can't write against a read only replica.")
	a := &answers{takes: func(int) time.Duration { return 0 }, fails: func(n int) error {
		if n < 50 {
			return readonly
		}
		return nil
	}}
	asked(t, a, func(ask func(context.Context) (int, error)) {
		if _, err := ask(context.Background()); err != nil {
			t.Error(err)
		}
	})
	a = &answers{takes: a.takes, fails: func(int) error { return readonly }}
	asked(t, a, func(ask func(context.Context) (int, error)) {
		if _, err := ask(context.Background()); !errors.Is(err, readonly) {
			t.Error(err)
		}
		if took := time.Since(a.begun); took < time.Second || took > 1100*time.Millisecond {
			t.Errorf("it took %v", took)
		}
	})
}

// A client sees the deadline of its connection pass before the context's timer has run:
// that is the end of the caller's context, and no fault of the store.
func TestAnAnswerAtTheDeadlineIsTheEndOfTheContext(t *testing.T) {
	timeout := &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}
	for _, lease := range []time.Duration{50 * time.Millisecond, time.Minute} {
		a := &answers{fails: func(int) error { return timeout }}
		a.takes = func(int) time.Duration { return lease - time.Since(a.begun) }
		asked(t, a, func(ask func(context.Context) (int, error)) {
			ctx, cancel := context.WithCancelCause(context.Background())
			time.AfterFunc(lease+time.Millisecond, func() { cancel(context.DeadlineExceeded) })
			if _, _ = ask(deadlineOnly{ctx, time.Now().Add(lease)}); ctx.Err() == nil {
				t.Errorf("with %v left, the call ended before its context", lease)
			}
		})
	}
}

// deadlineOnly is a context whose timer is late.
type deadlineOnly struct {
	context.Context
	end time.Time
}

func (d deadlineOnly) Deadline() (time.Time, bool) { return d.end, true }
