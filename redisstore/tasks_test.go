package redisstore

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestWaitingEndsWithTheLastTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all tasks
		begin := time.Now()
		for i := range 3 {
			all.run(func() { time.Sleep(time.Duration(i+1) * time.Second) })
		}
		if err := all.wait(t.Context()); err != nil || time.Since(begin) != 3*time.Second {
			t.Errorf("waited %v, %v; want 3s", time.Since(begin), err)
		}
		if err := all.wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestWaitingEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all tasks
		all.run(func() { time.Sleep(time.Hour) })
		reason := errors.New("no more time")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, reason)
		defer cancel()
		if err := all.wait(ctx); !errors.Is(err, reason) {
			t.Errorf("%v, want %v", err, reason)
		}
		if err := all.wait(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

func TestACallIsLeftBehindWhenItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all tasks
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		_, err := detached(ctx, &all, func() (int, error) { time.Sleep(time.Minute); return 7, nil })
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != time.Second {
			t.Errorf("%v after %v; want the end of the context after 1s", err, time.Since(begin))
		}
		if err := all.wait(t.Context()); err != nil || time.Since(begin) != time.Minute {
			t.Errorf("the call was waited for %v, %v; want 1m", time.Since(begin), err)
		}
		if v, err := detached(context.Background(), &all, func() (int, error) { return 7, nil }); v != 7 || err != nil {
			t.Errorf("%d, %v", v, err)
		}
	})
}
