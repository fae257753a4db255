package queue_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/lifecycle"
	"github.com/lockfx/lockfx/internal/queue"
)

func TestAnOutageIsToldOnceAndRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newSpy()
		store.down(errDown)
		p := newProcess(t, store)
		began := time.Now()
		waiter := spawn(func() error { return p.run(background, queue.Forever, nothing) })
		time.Sleep(time.Hour)
		waits(t, waiter)
		p.wantKinds(t, lockfx.EventFailed)
		if e := p.events[0]; !errors.Is(e.Err, lockfx.ErrStore) || !errors.Is(e.Err, errDown) {
			t.Errorf("it told %v", e.Err)
		}
		asked := store.asked("acquire", began)
		last := asked[len(asked)-1] - asked[len(asked)-2]
		if first := asked[1] - asked[0]; first > 100*time.Millisecond || last < 750*time.Millisecond {
			t.Errorf("the pauses go from %v to %v", first, last)
		}
		for i := 1; i < len(asked); i++ {
			if pause := asked[i] - asked[i-1]; pause > longestPoll {
				t.Errorf("it asked again after %v", pause)
			}
		}

		release := foreign(t, store.Store, 2*time.Hour)
		store.up()
		time.Sleep(2 * time.Second)
		p.wantKinds(t, lockfx.EventFailed, lockfx.EventRefused)
		store.wantWatched(t) // it watches now
		release()
		wantNow(t, waiter)
		p.wantKinds(t, lockfx.EventFailed, lockfx.EventRefused, lockfx.EventAcquired, lockfx.EventReleased)
	})
}

// What comes and goes is told each time, and pauses begin anew.
func TestEachOutageIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newSpy()
		foreign(t, store.Store, time.Hour)
		p := newProcess(t, polled{store})
		waiter := spawn(func() error { return p.run(background, 50*time.Second, nothing) })
		for range 2 {
			time.Sleep(10 * time.Second)
			store.down(errDown)
			time.Sleep(10 * time.Second)
			store.up()
		}
		e := <-waiter
		wantIs(t, e.err, lockfx.ErrTimeout, lockfx.ErrNotAcquired)
		wantNot(t, e.err, lockfx.ErrStore)
		r, f := lockfx.EventRefused, lockfx.EventFailed
		p.wantKinds(t, r, f, r, f, r)
	})
}

func TestAnOutageIsTheErrorWhenTheWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newSpy()
		store.down(errDown)
		p := newProcess(t, store)
		err := p.run(background, time.Minute, nothing)
		wantIs(t, err, lockfx.ErrTimeout, lockfx.ErrStore, errDown)
		wantNot(t, err, lockfx.ErrNotAcquired)
		const want = `timed out: waited 1m0s, and the wait limit is 1m0s: acquire "nightly": store failed: the store is down`
		if err.Error() != want {
			t.Errorf("err = %v\nwant  %s", err, want)
		}
		ctx, cancel := context.WithTimeoutCause(background, time.Minute, errors.New("the job is over"))
		defer cancel()
		err = p.run(ctx, queue.Forever, nothing)
		wantIs(t, err, context.DeadlineExceeded, lockfx.ErrStore, errDown)
		wantNot(t, err, lockfx.ErrTimeout, lockfx.ErrNotAcquired)
		const ended = `stopped waiting after 1m0s: context deadline exceeded: the job is over: acquire "nightly": store failed: the store is down`
		if err.Error() != ended {
			t.Errorf("err = %v\nwant  %s", err, ended)
		}
	})
}

func TestContentionIsTheErrorWhenTheWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newSpy()
		foreign(t, store.Store, time.Hour)
		p := newProcess(t, store)
		err := p.run(background, time.Minute, nothing)
		var refusal *lockfx.NotAcquiredError
		if !errors.As(err, &refusal) || refusal.HeldBy != "another" || refusal.Self {
			t.Errorf("err = %#v", refusal)
		}
		if want := "timed out: waited 1m0s, and the wait limit is 1m0s: " + refusal.Error(); err.Error() != want {
			t.Errorf("err = %v\nwant  %s", err, want)
		}
		p.wantKinds(t, lockfx.EventRefused)
	})
}

// A store that is too slow for the longest hold is slow, and not for ever.
func TestASlowStoreIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newSpy()
		store.acquires(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		p := newProcess(t, store)
		waiter := spawn(func() error {
			return p.line.Run(background, queue.Request{Machine: p.Machine, Limit: time.Hour, Terms: lifecycle.Terms{MaxHold: time.Second}}, nothing)
		})
		time.Sleep(10 * time.Second)
		waits(t, waiter)
		p.wantKinds(t, lockfx.EventFailed)
		store.up()
		wantIs(t, (<-waiter).err)
	})
}

// What no attempt can mend is not tried again.
func TestSomeFaultsAreNotWaitedFor(t *testing.T) {
	for name, test := range map[string]struct {
		grant lockfx.Grant
		err   error
		want  error
	}{
		"a malformed grant":   {grant: lockfx.Grant{OK: true}, want: lockfx.ErrBadGrant},
		"a regressed token":   {grant: lockfx.Grant{OK: true, Token: 1}, want: lockfx.ErrFenceRegressed},
		"a rule of the store": {err: lockfx.CheckTTL(1, 2), want: lockfx.ErrConfig},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				store := answers{newSpy(), func(context.Context, string, time.Duration) (lockfx.Grant, error) {
					asked++
					return test.grant, test.err
				}}
				p := newProcess(t, store, func(c *lifecycle.Config) { c.Last = 1 })
				wantNow(t, spawn(func() error { return p.run(background, queue.Forever, nothing) }), test.want)
				if asked != 1 || !p.line.Idle() {
					t.Errorf("the store was asked %d times; the queue is idle: %v", asked, p.line.Idle())
				}
			})
		})
	}
}
