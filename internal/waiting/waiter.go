package waiting

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/lifecycle"
)

// Bounds of polling, and of the pause after an outage or the loss of a watch.
const (
	minPause = 50 * time.Millisecond
	maxPause = time.Second
)

// watchWithin bounds an attempt to watch: nothing is asked meanwhile.
const watchWithin = 5 * time.Second

// jitter keeps those who wait for the end of one lease from coming all at once.
const jitter = minPause / 10

// waiter is a caller that waits, and then the head of the line.
type waiter struct {
	Request
	began time.Time

	last    error           // what was in the way, as far as is known
	freed   <-chan struct{} // wakes; nil while there is no watch
	stop    func()          // ends the watch
	outages int             // in a row
	losses  int             // of watches, without a signal in between
	deaf    int             // attempts to watch that failed in a row
	unheard int             // refusals to poll through before the next one
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
		if ran {
			return err
		}
		if wait.Err() != nil || !worthWaiting(err) {
			return w.gaveUp(wait, err)
		}
		if w.Missed != nil {
			w.Missed(err)
		}
		if !w.pause(wait, err) {
			return w.gaveUp(wait, err)
		}
		w.last = err
	}
}

// worthWaiting reports whether an attempt that failed with err may fare better
// later: the key is held by another, or the store is out of reach.
func worthWaiting(err error) bool {
	return errors.Is(err, lockfx.ErrNotAcquired) || errors.Is(err, lockfx.ErrStore) && !errors.Is(err, lockfx.ErrConfig)
}

// pause waits until the next attempt is due after one that failed with err, and
// reports whether the waiting goes on. An attempt that ends like the last one is
// not announced again.
func (w *waiter) pause(wait context.Context, err error) bool {
	var refusal *lockfx.NotAcquiredError
	switch {
	case !errors.As(err, &refusal):
		w.Terms.Suppress = lockfx.EventFailed
		return w.sleep(wait, backOff(&w.outages))
	case refusal.Self: // held by hand: the store was not asked
		select {
		case <-wait.Done():
			return false
		case <-w.Machine.Vacant():
			return true
		}
	}
	w.Terms.Suppress, w.outages = lockfx.EventRefused, 0
	if w.freed == nil && w.watch(wait) {
		return true // the key may have been freed before the watch began
	}
	return w.sleep(wait, w.untilNext(refusal.RetryAfter))
}

// watch begins to watch, and reports whether it did. If it could not, a later refusal
// tries again: at first the next one, and in the end every sixteenth.
func (w *waiter) watch(wait context.Context) bool {
	if w.unheard > 0 {
		w.unheard--
		return false
	}
	bounded, cancel := context.WithTimeout(wait, watchWithin)
	defer cancel()
	freed, stop, err := w.Machine.Watch(bounded)
	if err != nil {
		w.unheard = 1<<min(w.deaf, 4) - 1
		w.deaf++
		return false
	}
	w.freed, w.stop, w.deaf = freed, stop, 0
	return true
}

func (w *waiter) unwatch() {
	if w.stop != nil {
		w.stop()
	}
	w.freed, w.stop = nil, nil
}

// untilNext returns how long to wait at most when a lease is in the way that can
// last for left, if the store knows.
func (w *waiter) untilNext(left time.Duration) time.Duration {
	expiry := max(left, 2*jitter) + rand.N(jitter)
	switch watched := w.freed != nil; {
	case watched && left > 0:
		return expiry // woken before, unless the lease ends by itself
	case watched:
		return Jittered(maxPause)
	case left > 0:
		return min(expiry, Jittered(maxPause))
	}
	return Jittered(maxPause / 2)
}

// backOff counts one more fault and returns how long to wait after it.
func backOff(faults *int) time.Duration {
	d := min(minPause<<min(*faults, 10), maxPause)
	*faults++
	return Jittered(d)
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
		return true
	case _, ok := <-w.freed:
		if !ok {
			w.unwatch() // it is lost: poll, then watch again
			return w.sleep(wait, backOff(&w.losses))
		}
		w.losses = 0
		return true
	}
}
