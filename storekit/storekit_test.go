package storekit_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/storekit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	errEngine = errors.New("connection refused")
	errWhy    = errors.New("the request was cancelled")
)

func cancelled() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errWhy)
	return ctx
}

// matches reports whether err matches all of want, and none of the other sentinels.
func matches(t *testing.T, err error, want ...error) {
	t.Helper()
	for _, target := range []error{context.Canceled, errWhy, lockfx.ErrConfig, lockfx.ErrBadGrant, lockfx.ErrStore, errEngine} {
		wanted := false
		for _, w := range want {
			wanted = wanted || errors.Is(w, target)
		}
		if errors.Is(err, target) != wanted {
			t.Errorf("%v: matches %q: %v, want %v", err, target, !wanted, wanted)
		}
	}
}

func TestFault_JudgesInOneOrder(t *testing.T) {
	ctx := context.Background()
	bad := errors.Join(lockfx.ErrBadGrant, errors.New("three values"))
	matches(t, storekit.Fault(cancelled(), "renew", "k", errEngine), context.Canceled, errWhy)
	matches(t, storekit.Fault(cancelled(), "renew", "k", bad), context.Canceled, errWhy)
	late, cancel := context.WithTimeoutCause(ctx, 0, errWhy)
	defer cancel()
	err := storekit.Fault(late, "renew", "k", errEngine)
	matches(t, err, errWhy)
	if want := `renew "k": context deadline exceeded: the request was cancelled (connection refused)`; err.Error() != want || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("after a deadline: %v, want %s", err, want)
	}
	matches(t, storekit.Fault(ctx, "renew", "k", lockfx.ErrConfig), lockfx.ErrConfig)
	matches(t, storekit.Fault(ctx, "renew", "k", bad), lockfx.ErrBadGrant)
	matches(t, storekit.Fault(ctx, "renew", "k", errEngine), lockfx.ErrStore, errEngine)
	if got, want := storekit.Fault(ctx, "renew", "k", errEngine).Error(), `renew "k": store failed: connection refused`; got != want {
		t.Errorf("the error reads %s, want %s", got, want)
	}
}

func TestCheck_ReportsAllFaultsAtOnce(t *testing.T) {
	ctx := context.Background()
	err := storekit.Check(ctx, "acquire", "", lockfx.CheckTTL(0, time.Second))
	matches(t, err, lockfx.ErrConfig)
	for _, part := range []string{"acquire: ", "must not be empty", "must be greater than 0"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in: %v", part, err)
		}
	}
	matches(t, storekit.Check(ctx, "acquire", "k", lockfx.CheckTTL(-1, 1)), lockfx.ErrConfig)
	matches(t, storekit.Check(ctx, "break", "a\x00", nil), lockfx.ErrConfig)
	matches(t, storekit.Check(cancelled(), "acquire", "", nil), context.Canceled, errWhy)
	if err := storekit.Check(ctx, "acquire", "k", nil); err != nil {
		t.Error(err)
	}
}

func TestMicros_RoundsUp(t *testing.T) {
	for d, want := range map[time.Duration]int64{1: 1, 1000: 1, 1001: 2, time.Second: 1e6} {
		if got := storekit.Micros(d); got != want {
			t.Errorf("Micros(%v) = %d, want %d", d, got, want)
		}
	}
}

type option string

func (o option) String() string { return string(o) }

func TestSettle_ReportsAllFaultsAtOnce(t *testing.T) {
	apply := func(o interface{ String() string }) error {
		if o.String() == "good" {
			return nil
		}
		return errors.New("must be good")
	}
	opts := []interface{ String() string }{option("good"), nil, option("bad"), option("worse")}
	err := storekit.Settle("mystore", opts, apply, "", "the client must not be nil")
	want := "mystore: invalid configuration: option 2 is nil; bad: must be good; worse: must be good; the client must not be nil"
	if err == nil || err.Error() != want || !errors.Is(err, lockfx.ErrConfig) {
		t.Errorf("got %v\nwant %s", err, want)
	}
	if err := storekit.Settle("mystore", opts[:1], apply, ""); err != nil {
		t.Error(err)
	}
}

func TestTasks_AreWaitedForWithABound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tasks storekit.Tasks
		if err := tasks.Wait(cancelled()); err != nil {
			t.Errorf("there is nothing to wait for: %v", err)
		}
		done := tasks.Go(func() { time.Sleep(time.Second) })
		tasks.Go(func() { time.Sleep(2 * time.Second) })
		if err := tasks.Wait(cancelled()); !errors.Is(err, errWhy) {
			t.Errorf("Wait = %v", err)
		}
		<-done
		began := time.Now()
		if err := tasks.Wait(t.Context()); err != nil || time.Since(began) != time.Second {
			t.Errorf("Wait = %v after %v", err, time.Since(began))
		}
	})
}
