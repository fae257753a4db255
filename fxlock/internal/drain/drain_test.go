package drain_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/lockfx/lockfx/fxlock/internal/drain"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	errClosed = errors.New("closed")
	errLate   = errors.New("late")
)

func TestAClosedGateLetsNobodyInUntilItOpens(t *testing.T) {
	var g drain.Calls
	if err := g.Close(t.Context(), errClosed); err != nil {
		t.Errorf("closing without calls: %v", err)
	}
	if ctx, leave, err := g.Enter(t.Context()); ctx != nil || leave != nil || !errors.Is(err, errClosed) {
		t.Errorf("a call entered after Close: %v", err)
	}
	g.Open()
	ctx, leave, err := g.Enter(t.Context())
	if err != nil || ctx.Err() != nil {
		t.Fatal(err)
	}
	leave()
	if ctx.Err() == nil {
		t.Error("the context outlives the call")
	}
}

func TestClosingCancelsWithTheCauseAndWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g drain.Calls
		var left atomic.Int32
		for i := range 3 {
			ctx, leave, err := g.Enter(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				<-ctx.Done()
				if cause := context.Cause(ctx); !errors.Is(cause, errClosed) {
					t.Errorf("the cause is %v", cause)
				}
				time.Sleep(time.Duration(i) * time.Second)
				left.Add(1)
				leave()
			}()
		}
		both := make(chan error, 2)
		for range 2 { // two who close
			go func() { both <- g.Close(t.Context(), errClosed) }()
		}
		if err := errors.Join(<-both, <-both); err != nil || left.Load() != 3 {
			t.Errorf("closed with %v after %d calls", err, left.Load())
		}
	})
}

func TestClosingWaitsNoLongerThanItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g drain.Calls
		_, leave, err := g.Enter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errLate)
		defer cancel()
		if err := g.Close(ctx, errClosed); !errors.Is(err, errLate) {
			t.Errorf("closed with %v", err)
		}
		g.Open() // again, while the first call is still inside
		_, leaveSecond, err := g.Enter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		leaveSecond()
		time.AfterFunc(time.Second, leave)
		if err := g.Close(t.Context(), errClosed); err != nil {
			t.Errorf("closed with %v", err)
		}
	})
}

func TestACallEndsWithItsCaller(t *testing.T) {
	var g drain.Calls
	caller, cancel := context.WithCancelCause(t.Context())
	ctx, leave, err := g.Enter(caller)
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	cancel(errLate)
	if cause := context.Cause(ctx); !errors.Is(cause, errLate) {
		t.Errorf("the cause is %v", cause)
	}
}
