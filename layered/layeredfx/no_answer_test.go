package layeredfx

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/layered"
)

// hanging is a host whose file system answers when it is told to.
func hanging(acquire, release <-chan struct{}) *host {
	return &host{withLock: func(ctx context.Context, _ struct{}, action func(context.Context, layered.Call[struct{}]) (struct{}, error), _ ...layered.Option) (
		res layered.Result[struct{}, struct{}], err error,
	) {
		<-acquire // whatever becomes of ctx
		_, err = action(ctx, layered.Call[struct{}]{})
		<-release
		return res, err
	}}
}

func TestThroughHost_DoesNotWaitForAFileSystemThatDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers, now := make(chan struct{}), make(chan struct{})
		close(now)
		for _, limit := range []time.Duration{0, time.Minute} {
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			_, _, err := hanging(answers, now).Enter(ctx, "k", limit)
			cancel()
			if !errors.Is(err, lockfx.ErrNotAcquired) || time.Since(began) != time.Minute+answersWithin {
				t.Errorf("limit %v: after %v: %v", limit, time.Since(began), err)
			}
		}
		leave, _, err := hanging(now, answers).Enter(t.Context(), "k", 0)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := leave(); !errors.Is(err, errNoAnswer) || time.Since(began) != answersWithin {
			t.Errorf("leave, after %v: %v", time.Since(began), err)
		}
		close(answers) // nothing is left behind then
	})
}
