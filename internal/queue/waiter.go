package queue

import (
	"context"
	"errors"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/lifecycle"
)

// waiter is a caller that waits, and then the head of the queue.
type waiter struct {
	Request
	began time.Time
	next  time.Time // what looks are paced by
	gate  gate

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
		if err := w.gate.pass(wait); err != nil {
			return w.gaveUp(wait, err)
		}
		w.Terms.Gate = w.gate.note
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
// later: the key is held by another, or the store is out of reach or slow.
func worthWaiting(err error) bool {
	for _, passing := range []error{lockfx.ErrNotAcquired, lockfx.ErrStore, lockfx.ErrTimeout} {
		if errors.Is(err, passing) {
			return !errors.Is(err, lockfx.ErrConfig)
		}
	}
	return false
}

// pause waits until the next attempt is due after one that failed with err, and
// reports whether the waiting goes on. An attempt that ends like the last one is
// not announced again.
func (w *waiter) pause(wait context.Context, err error) bool {
	w.gate.patience = 0
	var refusal *lockfx.NotAcquiredError
	switch {
	case !errors.As(err, &refusal):
		w.Terms.Suppress = lockfx.EventFailed
		return w.sleep(wait, backOff(&w.outages)) && w.pace(wait)
	case refusal.Self: // held by hand: the store was not asked
		select {
		case <-wait.Done():
			return false
		case <-w.Machine.Vacant():
			return true
		}
	}
	w.Terms.Suppress, w.outages = lockfx.EventRefused, 0
	if w.gate.ahead() { // that is where it waits
		w.gate.refused(refusal.RetryAfter)
		return w.pace(wait)
	}
	if w.freed == nil && w.watch(wait) {
		return w.pace(wait) // the key may have been freed before the watch began
	}
	return w.sleep(wait, w.untilNext(refusal.RetryAfter)) && w.pace(wait)
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
