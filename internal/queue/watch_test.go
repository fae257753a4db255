package queue_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/lifecycle"
	"github.com/lockfx/lockfx/internal/queue"
)

// A key that is freed between the refusal and the beginning of the watch signals
// nobody.
func TestAKeyThatIsFreedBeforeTheWatchBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newSpy()
		release := foreign(t, store.Store, ttl)
		store.refused = func() { store.refused = nil; release() }
		p := newProcess(t, store)
		wantNow(t, spawn(func() error { return p.run(background, queue.Forever, nothing) }))
	})
}

func TestASpuriousSignalIsOneMoreTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newSpy()
		foreign(t, store.Store, time.Hour)
		freed := make(chan struct{}, 1)
		store.watch = func(context.Context) (<-chan struct{}, func(), error) { return freed, func() {}, nil }
		p := newProcess(t, store)
		waiter := spawn(func() error { return p.run(background, time.Minute, nothing) })
		began := time.Now()
		for range 3 {
			freed <- struct{}{}
			synctest.Wait()
		}
		if n := len(store.asked("acquire", began.Add(1))); n != 0 {
			t.Errorf("it asked %d times later on", n)
		}
		if n := len(store.asked("acquire", began)); n != 2+3 {
			t.Errorf("it asked %d times, want twice and once for each signal", n)
		}
		wantIs(t, (<-waiter).err, lockfx.ErrTimeout)
	})
}

func TestALostWatchIsMadeAnewWithoutSpinning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newSpy()
		release := foreign(t, store.Store, time.Hour)
		var mended atomic.Bool
		store.watch = func(ctx context.Context) (<-chan struct{}, func(), error) {
			if mended.Load() {
				return store.Store.Watch(ctx, key)
			}
			freed := make(chan struct{})
			close(freed)
			return freed, func() {}, nil
		}
		p := newProcess(t, store)
		began := time.Now()
		waiter := spawn(func() error { return p.run(background, queue.Forever, nothing) })
		time.Sleep(time.Minute)
		waits(t, waiter)
		watched := store.asked("watch", began)
		if n := len(store.asked("acquire", began)); n > 170 || len(watched) > 85 || len(watched) < 50 {
			t.Errorf("within a minute it asked %d times, and watched %d times", n, len(watched))
		}
		if n := store.watching(); n != 0 {
			t.Errorf("%d lost watches were not stopped", n)
		}
		mended.Store(true)
		time.Sleep(2 * time.Second)
		store.wantWatched(t)
		release()
		wantNow(t, waiter)
	})
}

func TestWithoutAWatchItPolls(t *testing.T) {
	for name, watch := range map[string]func(context.Context) (<-chan struct{}, func(), error){
		"an error":   func(context.Context) (<-chan struct{}, func(), error) { return nil, nil, errDown },
		"a panic":    func(context.Context) (<-chan struct{}, func(), error) { panic(errDown) },
		"no channel": func(context.Context) (<-chan struct{}, func(), error) { return nil, func() {}, nil },
		"no answer": func(ctx context.Context) (<-chan struct{}, func(), error) {
			<-ctx.Done()
			return nil, nil, ctx.Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newSpy()
				release := foreign(t, store.Store, time.Hour)
				store.watch = watch
				p := newProcess(t, store, func(c *lifecycle.Config) { c.CallTimeout = time.Second })
				began := time.Now()
				waiter := spawn(func() error { return p.run(background, queue.Forever, nothing) })
				time.Sleep(time.Minute)
				waits(t, waiter)
				if asked, watched := len(store.asked("acquire", began)), len(store.asked("watch", began)); asked > 80 || asked < 25 || watched > 80 {
					t.Errorf("within a minute it asked %d times, and tried %d times to watch", asked, watched)
				}
				p.wantKinds(t, lockfx.EventRefused)
				release()
				released := time.Now()
				if e := <-waiter; e.err != nil || e.at.Sub(released) > time.Second+longestPoll {
					t.Errorf("%v after the release: %v", e.at.Sub(released), e.err)
				}
			})
		})
	}
}

// Where a watch can't be had, or not soon, the waiter polls all the same: it asks less
// and less often for the watch.
func TestAWatchThatCannotBeHadHoldsNobodyUp(t *testing.T) {
	for name, watch := range map[string]func(context.Context) (<-chan struct{}, func(), error){
		"refused": func(context.Context) (<-chan struct{}, func(), error) { return nil, nil, errDown },
		"no answer": func(ctx context.Context) (<-chan struct{}, func(), error) {
			<-ctx.Done()
			return nil, nil, ctx.Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newSpy()
				release := foreign(t, store.Store, time.Hour)
				store.watch = watch
				p := newProcess(t, store)
				began := time.Now()
				waiter := spawn(func() error { return p.run(background, queue.Forever, nothing) })
				const length = 5 * time.Minute
				time.Sleep(length)
				waits(t, waiter)
				asked, watched := store.asked("acquire", began), store.asked("watch", began)
				if len(asked) < 200 || len(watched) < 10 || len(watched) > 30 {
					t.Errorf("within %v it asked %d times, and tried %d times to watch", length, len(asked), len(watched))
				}
				for i := 1; i < len(asked); i++ {
					if pause := asked[i] - asked[i-1]; pause > 5*time.Second+longestPoll {
						t.Errorf("it asked again after %v", pause)
					}
				}
				store.mu.Lock()
				store.watch = nil
				store.mu.Unlock()
				time.Sleep(30 * time.Second)
				store.wantWatched(t) // it watches now
				release()
				wantNow(t, waiter)
			})
		})
	}
}
