package waiting

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/lifecycle"
)

// Bounds of polling, and of the pause after an outage.
const (
	minPause = 50 * time.Millisecond
	maxPause = time.Second
)

// waiter is a caller that waits, and then the head of the line.
type waiter struct {
	Request
	began time.Time

	freed   <-chan struct{} // wakes; nil while there is no watch
	stop    func()          // ends the watch
	outages int             // failures in a row
}

// run tries until body ran, and waits in between.
func (w *waiter) run(ctx, wait context.Context, body Body) error {
	defer w.unwatch()
	w.Terms.Within = wait
	for {
		ran := false
		err := w.Machine.RunOn(ctx, w.Terms, func(ctx context.Context, h *lifecycle.Hold) error {
			ran = true
			w.unwatch()
			return body(ctx, h)
		})
		if ran || !worthWaiting(err) {
			return err
		}
		if wait.Err() != nil {
			return w.gaveUp(wait, err)
		}
		if w.watch(wait, err) {
			continue // the key may have been freed before the watch began
		}
		if !w.sleep(wait, w.pause(err)) {
			return w.gaveUp(wait, err)
		}
	}
}

// worthWaiting reports whether an attempt that failed with err may fare better
// later: the key is held by another, or the store is out of reach.
func worthWaiting(err error) bool {
	return errors.Is(err, lockfx.ErrNotAcquired) || errors.Is(err, lockfx.ErrStore) && !errors.Is(err, lockfx.ErrConfig)
}

// watch begins to watch after the first refusal, and reports whether it did.
func (w *waiter) watch(wait context.Context, err error) bool {
	if w.freed != nil || !errors.Is(err, lockfx.ErrNotAcquired) {
		return false
	}
	watcher, ok := w.Machine.Store().(lockfx.Watcher)
	if !ok {
		return false
	}
	freed, stop, err := watcher.Watch(wait, w.Machine.Key())
	if err != nil {
		return false // poll; the next refusal tries to watch again
	}
	w.freed, w.stop = freed, stop
	return true
}

func (w *waiter) unwatch() {
	if w.stop != nil {
		w.stop()
	}
	w.freed, w.stop = nil, nil
}

// pause returns how long to wait at most before the next attempt, and keeps an
// attempt that ends like the last one from being announced again.
func (w *waiter) pause(err error) time.Duration {
	var refusal *lockfx.NotAcquiredError
	if !errors.As(err, &refusal) {
		w.Terms.Hush = lockfx.EventFailed
		w.outages++
		return Jittered(min(minPause<<min(w.outages-1, 10), maxPause))
	}
	w.Terms.Hush, w.outages = lockfx.EventRefused, 0
	left := refusal.RetryAfter
	switch {
	case w.freed != nil && left > 0:
		return left + rand.N(minPause/10) // woken before, unless the lease expires
	case w.freed != nil:
		return maxPause // a watcher that does not say: look now and then
	case left > 0:
		return min(left+rand.N(minPause/10), Jittered(maxPause))
	}
	return Jittered(maxPause / 2)
}

// Jittered returns d, a quarter more or less.
func Jittered(d time.Duration) time.Duration { return d - d/4 + rand.N(d/2) }

// sleep waits for d or a signal, and reports whether the waiting goes on.
func (w *waiter) sleep(wait context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-wait.Done():
		return false
	case <-timer.C:
	case _, ok := <-w.freed:
		if !ok {
			w.unwatch() // it is lost: poll, then watch again
			return w.sleep(wait, Jittered(minPause))
		}
	}
	return true
}
