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
