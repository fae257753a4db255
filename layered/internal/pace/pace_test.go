package pace

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLooks_OfManyAreNoMoreThanAFewHaveTogether(t *testing.T) {
	for _, waiters := range []int{1, 100, 10_000} {
		synctest.Test(t, func(t *testing.T) {
			const d = 20 * time.Second
			ctx, cancel := context.WithTimeout(t.Context(), d)
			defer cancel()
			var looks Looks
			var looked atomic.Int64
			var all sync.WaitGroup
			for range waiters {
				all.Go(func() {
					w := looks.Begin()
					defer w.End()
					for w.Sleep(ctx, time.Hour) == nil {
						looked.Add(1)
					}
				})
			}
			all.Wait()
			// A quarter more: the first looks are early.
			if limit := int64(d / each * 5 / 4); looked.Load() > limit || looked.Load() < int64(waiters) {
				t.Errorf("%d who wait look %d times in %v, want at most %d", waiters, looked.Load(), d, limit)
			}
		})
	}
}

func TestSleep_EndsWithTheContextOrTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("gone")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Millisecond, gone)
		defer cancel()
		var looks Looks
		w := looks.Begin()
		defer w.End()
		if err := w.Sleep(ctx, 0); err != nil {
			t.Error(err)
		}
		began := time.Now()
		if err := w.Sleep(ctx, time.Hour); !errors.Is(err, gone) || time.Since(began) != time.Millisecond {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

func TestTurn_EndsAfterAWhileAndLeavesAGap(t *testing.T) {
	const longest = time.Second
	synctest.Test(t, func(t *testing.T) {
		var turn Turn
		hold := func(met bool) (waited time.Duration) {
			began := time.Now()
			if err := turn.Give(t.Context(), longest); err != nil {
				t.Error(err)
			}
			waited = time.Since(began)
			turn = turn.Begin(met)
			time.Sleep(600 * time.Millisecond)
			turn = turn.End()
			return waited
		}
		for i, tt := range []struct {
			pause time.Duration
			met   bool
			want  time.Duration
		}{
			{0, false, 0},
			{0, false, 0},   // 600 ms so far
			{0, false, Gap}, // 1.2 s
			{0, false, 0},
			{Gap, false, 0}, // others had the time to look
			{0, false, 0},
			{0, true, Gap}, // after a turn, even if the next attempt then meets another
			{0, true, 0},   // whom another goes in between has a new turn
			{0, false, 0},
			{Gap / 5, false, Gap - Gap/5},
		} {
			time.Sleep(tt.pause)
			if waited := hold(tt.met); waited != tt.want {
				t.Errorf("hold %d waited for %v, want %v", i, waited, tt.want)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		hold(false)
		if err := turn.Give(ctx, longest); !errors.Is(err, context.Canceled) {
			t.Errorf("Give = %v", err)
		}
	})
}

func TestTurns_KeepWhatIsNotOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ts Turns
		for i := range 100_000 {
			path := strconv.Itoa(i)
			ts.Keep(path, ts.Of(path).Begin(false).End())
			time.Sleep(time.Millisecond)
		}
		if n := ts.Len(); n > 4*int(Gap/time.Millisecond) {
			t.Errorf("%d paths are kept", n)
		}
	})
}
