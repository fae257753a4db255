package queue_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/queue"
)

// A lease that this process holds by hand is not asked for, and its end is not polled
// for.
func TestALeaseHeldByHandIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newSpy()
		p := newProcess(t, polled{store})
		if ok, err := p.Acquire(background); !ok || err != nil {
			t.Fatal(ok, err)
		}
		first := spawn(func() error { return p.run(background, time.Minute, nothing) })
		second := spawn(func() error { return p.run(background, queue.Forever, nothing) })
		store.wantQuiet(t, time.Second)
		wantIs(t, (<-first).err, lockfx.ErrTimeout, lockfx.ErrNotIdle)
		waits(t, second)
		if ok, err := p.Release(background); !ok || err != nil {
			t.Error(ok, err)
		}
		wantNow(t, second)
	})
}

// The store frees the key a little before the machine is done with its release.
func TestASignalDuringAReleaseByHandIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slowRelease{newSpy(), time.Second}
		p := newProcess(t, store)
		if ok, err := p.Acquire(background); !ok || err != nil {
			t.Fatal(ok, err)
		}
		waiter := spawn(func() error { return p.run(background, queue.Forever, nothing) })
		if ok, err := p.Release(background); !ok || err != nil {
			t.Error(ok, err)
		}
		wantNow(t, waiter)
	})
}

// slowRelease answers, the first time, long after it has released.
type slowRelease struct {
	*spy
	delay time.Duration
}

func (s *slowRelease) Release(ctx context.Context, k string, token lockfx.Token) (bool, error) {
	ok, err := s.spy.Release(ctx, k, token)
	time.Sleep(s.delay)
	s.delay = 0
	return ok, err
}
