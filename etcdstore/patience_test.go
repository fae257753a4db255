package etcdstore

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockfx/lockfx"
)

// answers returns a request that meets these errors, and then none.
func answers(errs ...error) (send func(context.Context) (int, error), sent *int) {
	sent = new(int)
	return func(context.Context) (int, error) {
		*sent++
		if *sent <= len(errs) {
			return 0, errs[*sent-1]
		}
		return *sent, nil
	}, sent
}

// anyStore returns a store that is connected to nothing.
func anyStore(t *testing.T) *Store {
	return &Store{prefix: "p/", client: clientv3.NewCtxClient(t.Context())}
}

func TestWhatPassesIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		send, sent := answers(rpctypes.ErrGRPCNoLeader, io.EOF, errors.New("not a primary lessor"), rpctypes.ErrGRPCLeaseExist)
		answer, doubt, err := persist(t.Context(), send)
		if answer != 5 || !doubt || err != nil {
			t.Errorf("%d, %v, %v after %d attempts; want 5, true, nil", answer, doubt, err, *sent)
		}
	})
}

func TestAnAnswerIsFinal(t *testing.T) {
	for _, final := range []error{rpctypes.ErrGRPCLeaseNotFound, rpctypes.ErrGRPCPermissionDenied, rpctypes.ErrGRPCNoSpace} {
		send, sent := answers(final)
		_, doubt, err := persist(t.Context(), send)
		if !errors.Is(err, rpctypes.Error(final)) || doubt || *sent != 1 {
			t.Errorf("%v, doubt %v after %d attempts; want %v after 1", err, doubt, *sent, final)
		}
	}
	send, _ := answers()
	if answer, doubt, err := persist(t.Context(), send); answer != 1 || doubt || err != nil {
		t.Errorf("%d, %v, %v; want 1, false, nil", answer, doubt, err)
	}
}

func TestAStuckMemberIsLeftForAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := true
		begin := time.Now()
		_, doubt, err := persist(t.Context(), func(ctx context.Context) (int, error) {
			if stuck {
				stuck = false
				<-ctx.Done()
				return 0, ctx.Err()
			}
			return 1, nil
		})
		if took := time.Since(begin); err != nil || !doubt || took < attemptWithin || took > attemptWithin+longestPause {
			t.Errorf("%v, doubt %v after %v; want an answer, in doubt, after %v", err, doubt, took, attemptWithin)
		}
	})
}

func TestACallWithoutADeadlineEndsAllTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, send := range map[string]func(context.Context) (int, error){
			"no leader": func(context.Context) (int, error) { return 0, rpctypes.ErrGRPCNoLeader },
			"no answer": func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() },
		} {
			begin := time.Now()
			call, cancel := anyStore(t).bounded(t.Context(), patience)
			_, _, err := persist(call, send)
			cancel()
			if took := time.Since(begin); took < patience-attemptWithin || took > patience {
				t.Errorf("%s: after %v, want at most %v", name, took, patience)
			}
			err = fault(t.Context(), "acquire", "key", err)
			if !errors.Is(err, lockfx.ErrStore) || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), name) {
				t.Errorf("%v; want lockfx.ErrStore that says %q and is no end of the caller's context", err, name)
			}
		}
	})
}

func TestTheEndOfTheCallersContextIsToldAsSuch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("shutting down")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(cause) })
		call, end := anyStore(t).bounded(ctx, patience)
		defer end()
		_, _, err := persist(call, func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() })
		err = fault(ctx, "acquire", "key", err)
		if !errors.Is(err, context.Canceled) || !errors.Is(err, cause) || errors.Is(err, lockfx.ErrStore) {
			t.Errorf("%v; want the context's error and its cause", err)
		}
	})
}

func TestACallEndsWithItsClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, closeClient := context.WithCancel(t.Context())
		s := &Store{client: clientv3.NewCtxClient(ctx)}
		call, end := s.bounded(t.Context(), patience)
		defer end()
		time.AfterFunc(time.Second, closeClient)
		begin := time.Now()
		_, _, err := persist(call, func(context.Context) (int, error) { return 0, errors.New("the client connection is closing") })
		if took := time.Since(begin); took != time.Second {
			t.Errorf("after %v, want as soon as the client is closed", took)
		}
		if err == nil {
			t.Error("no error")
		}
	})
}

// Whoever is given little time still makes several attempts in it.
func TestAnAttemptTakesAPartOfTheTimeThatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for within, want := range map[time.Duration]int{1300 * time.Millisecond: 5, 20 * time.Second: 10} {
			ctx, cancel := context.WithTimeout(t.Context(), within)
			attempts := 0
			_, _, err := persist(ctx, func(ctx context.Context) (int, error) { attempts++; <-ctx.Done(); return 0, ctx.Err() })
			cancel()
			if err == nil || attempts < want {
				t.Errorf("%v within %v: %d attempts, want %d", err, within, attempts, want)
			}
		}
	})
}

// A lease may outlast the patience of other calls.
func TestARenewalIsTriedUntilItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if got := untilDeadline(t.Context()); got != patience {
			t.Errorf("without a deadline: %v, want %v", got, patience)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		call, end := anyStore(t).bounded(ctx, untilDeadline(ctx))
		defer end()
		begin := time.Now()
		_, _, err := persist(call, func(context.Context) (int, error) { return 0, rpctypes.ErrGRPCNoLeader })
		if took := time.Since(begin); took != time.Minute {
			t.Errorf("after %v, want the minute that was left", took)
		}
		err = fault(ctx, "renew", "key", err)
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, lockfx.ErrStore) || !strings.Contains(err.Error(), "no leader") {
			t.Errorf("%v; want the end of the context, and what etcd said", err)
		}
	})
}
