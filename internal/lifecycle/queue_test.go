package lifecycle_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfx/lockfx"
)

// byHand takes and gives back the lock n times.
func (r *rig) byHand(t testing.TB, n int) {
	t.Helper()
	for range n {
		r.acquire(t)
		r.wantRelease(t, true)
	}
}

// A callback that is slower than the lock costs events, which are counted, but no memory
// without end, and no loss.
func TestEvents_WaitInABoundedQueue(t *testing.T) {
	const most = 1024
	block := make(chan struct{})
	synctest.Test(t, func(t *testing.T) {
		block = make(chan struct{})
		r := newRig(t, observer(func(lockfx.Event) { <-block }))
		go func() { _, _ = r.Acquire(background) }() // its observer is the one that blocks
		synctest.Wait()
		r.wantRelease(t, true)
		r.byHand(t, most)
		r.store.renews(always(false, nil))
		for range 10 { // the losses of ten holds
			r.acquire(t)
			_, _ = r.Tick(background)
			r.wantRelease(t, false)
		}
		close(block)
		synctest.Wait()

		seen, dropped, losses := 0, 0, 0
		for _, e := range r.seen.all() {
			switch e.Kind {
			case lockfx.EventsDropped:
				dropped += e.Dropped
			case lockfx.EventLost:
				losses++
				seen++
			default:
				seen++
			}
		}
		if announced := 2 + 2*most + 3*10; seen+dropped != announced || dropped == 0 || seen > most+losses {
			t.Errorf("%d events were seen and %d dropped of %d", seen, dropped, announced)
		}
		if n := len(r.seen.lost()); losses != 10 || n != 10 {
			t.Errorf("%d losses were seen, and OnLost was called %d times, want 10", losses, n)
		}
		r.dispose(t)
		if last := r.seen.all()[len(r.seen.all())-1]; last.Kind != lockfx.EventDisposed {
			t.Errorf("the last event is %v", last)
		}
	})
}

// Losses alone do not let the queue grow without end either.
func TestEvents_LossesWaitInABoundedQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const losses = 5000
		block := make(chan struct{})
		r := newRig(t, observer(func(lockfx.Event) { <-block }))
		r.store.renews(always(false, nil))
		go func() { _, _ = r.Acquire(background) }()
		synctest.Wait()
		for range losses {
			_, _ = r.Tick(background)
			r.wantRelease(t, false)
			r.acquire(t)
		}
		close(block)
		synctest.Wait()
		if n := len(r.seen.all()); n > 2*1024+1 {
			t.Errorf("%d events waited", n)
		}
		r.dispose(t)
	})
}

// A call waits for the callbacks of its own events, and for few of those that follow.
func TestEvents_KeepNoCallerForThoseOfOthers(t *testing.T) {
	const slow = time.Second
	inBubble(t, func(t *testing.T, r *rig) {
		ctx, cancel := context.WithTimeout(background, 10*time.Minute)
		defer cancel()
		for range 3 { // callers that leave an observer no pause
			go func() {
				for ctx.Err() == nil {
					began := time.Now()
					ok, _ := r.Acquire(background)
					if ok {
						_, _ = r.Release(background)
					}
					if took := time.Since(began); took > 2*10*slow {
						t.Errorf("an acquisition and a release took %v", took)
						cancel()
					}
					time.Sleep(slow / 10)
				}
			}()
		}
		<-ctx.Done()
		time.Sleep(time.Hour)
		r.dispose(t)
	}, observer(func(lockfx.Event) { time.Sleep(slow) }))
}
