package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/lifecycle"
)

// caller is what the model knows of one run.
type caller struct {
	of     *replica
	waits  bool
	leaves time.Time // from then on it does not wait any more
	limit  time.Time // when its own limit is over; zero if it has none
	began  bool
	done   bool // its body
}

// stays reports whether it still waits.
func (c *caller) stays(now time.Time) bool { return c.waits && !c.began && now.Before(c.leaves) }

// farAway is later than any schedule lasts.
var farAway = time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC)

// witness is the model: who came to which line, in which order, and when the key was
// free. It notes what a line should not have done.
type witness struct {
	mu     sync.Mutex
	lines  map[*replica][]*caller // from their arrival to their end
	heads  map[*replica]time.Time // since when the first of a line is the first
	hands  map[*replica]bool      // the lease is held by hand, or lost in a hand
	freeAt time.Time              // when the key was or will be free
	calm   time.Time              // when the last trouble was over
	polls  bool                   // the store wakes nobody
	delays bool                   // the store takes its time
	ttl    time.Duration
	pace   time.Duration // how long callers stay away, and twice as long as they run
	faults []string
	tally  map[string]int
}

func (w *witness) fault(format string, args ...any) {
	w.faults = append(w.faults, time.Now().Format("04:05.000 ")+fmt.Sprintf(format, args...))
}

// arrive is called at the instant at which c comes to its line.
func (w *witness) arrive(c *caller) (busy bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	line := w.lines[c.of]
	if len(line) == 0 {
		w.heads[c.of] = time.Now()
	}
	w.lines[c.of] = append(line, c)
	return len(line) > 0
}

// turn checks that it is the turn of c: nobody who came before still waits or runs.
func (w *witness) turn(c *caller, what string) {
	for _, earlier := range w.lines[c.of] {
		switch {
		case earlier == c:
			return
		case earlier.stays(time.Now()):
			w.fault("%s by one who overtook another that waits", what)
			return
		case earlier.began && !earlier.done:
			w.fault("%s during the run of another of the same line", what)
			return
		}
	}
	w.fault("%s by one who has left", what)
}

// begin is called when the body of c begins.
func (w *witness) begin(c *caller, h *lifecycle.Hold) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.turn(c, "a run")
	if c.waits && time.Now().After(c.leaves) {
		w.fault("a run by one whose waiting is over")
	}
	c.began = true
	w.tally["run"]++
	// The deadline counts from the attempt that won, however long it was waited.
	if left := time.Until(h.Deadline()); left < w.ttl*8/10 {
		w.fault("a lease with only %v left was handed out", left)
	}
}

// cancelled is called at the end of a body. The limit of the waiting is no reason to end
// its context.
func (w *witness) cancelled(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	cause := context.Cause(ctx)
	if ctx.Err() != nil && !errors.Is(cause, context.Canceled) && !errors.Is(cause, lockfx.ErrLost) && !errors.Is(cause, lockfx.ErrDisposed) {
		w.fault("a body was cancelled: %v", cause)
	}
}

// finish is called when the body of c ends, in whatever way.
func (w *witness) finish(c *caller) { w.mu.Lock(); defer w.mu.Unlock(); c.done = true }

// end is called when c is told how its run ended.
func (w *witness) end(c *caller, e ended) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	line := w.lines[c.of]
	at := slices.Index(line, c)
	w.lines[c.of] = slices.Delete(line, at, at+1)
	if !c.began {
		w.gaveUp(c, e.err, at == 0, now)
	}
	if at == 0 {
		w.heads[c.of] = now
	}
}

// gaveUp judges the end of a run without a body.
func (w *witness) gaveUp(c *caller, err error, first bool, now time.Time) {
	late := time.Duration(0)
	if w.delays {
		late = 6 * maxLeg // a request or two may be under way
	}
	over := !now.Before(c.leaves)
	timedOut := !c.limit.IsZero() && !now.Before(c.limit)
	switch {
	case !c.waits:
		w.tally["try"]++
	case !over:
		w.fault("a waiter was turned away: %v", err)
	case now.Sub(c.leaves) > late:
		w.fault("a waiter went on for %v after the end of its waiting", now.Sub(c.leaves))
	case errors.Is(err, lockfx.ErrTimeout) && !timedOut, errors.Is(err, context.Canceled) && timedOut && c.leaves.Equal(c.limit):
		w.fault("a waiter was told the wrong end: %v", err)
	default:
		w.tally["gave up"]++
		if first && !w.hands[c.of] {
			w.awake(c.leaves, "a waiter gave up")
		}
	}
}

// granted is called when the store gives the key to somebody.
func (w *witness) granted() {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	w.awake(now, "a key was taken")
	w.tally["grant"]++
	w.freeAt = now.Add(w.ttl)
}

// Bounds of what may pass before a free key is taken by one who waits for it.
const (
	maxLeg    = 2 * time.Millisecond // a half of a request
	awakeness = 50 * time.Millisecond
)

// awake checks that the key was not free for long while the head of some line was
// waiting for it: none has missed the signal or the expiry.
func (w *witness) awake(now time.Time, what string) {
	since := now
	for p, line := range w.lines {
		if len(line) > 0 && line[0].stays(now.Add(-1)) && !w.hands[p] && w.heads[p].Before(since) {
			since = w.heads[p]
		}
	}
	if w.freeAt.After(since) {
		since = w.freeAt
	}
	bound := awakeness
	if w.polls {
		bound += longestPoll
	}
	// After trouble, a waiter may rely on what it was told before: the end of a lease.
	recovery := w.ttl + 2*time.Second
	if since.Before(w.calm.Add(recovery)) {
		bound += recovery
		if w.calm.After(since) {
			since = w.calm
		}
	}
	if idle := now.Sub(since); idle > bound {
		w.fault("%s when it had been free for %v", what, idle)
	}
}

// byHand is called when a replica holds the key by hand, and when it is done with it.
func (w *witness) byHand(p *replica, held bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hands[p] = held
	if held {
		w.tally["by hand"]++
	} else {
		w.heads[p] = time.Now()
	}
}

// freed, renewed and shifted follow the lease.

func (w *witness) freed() { w.mu.Lock(); defer w.mu.Unlock(); w.freeAt = time.Now() }

func (w *witness) renewed() { w.mu.Lock(); defer w.mu.Unlock(); w.freeAt = time.Now().Add(w.ttl) }

func (w *witness) shifted(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now := time.Now(); w.freeAt.After(now) {
		w.freeAt = now.Add(max(w.freeAt.Sub(now)-d, 0))
	}
	w.calm = time.Now()
}

// trouble is called when it begins, with its length.
func (w *witness) trouble(what string, d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tally[what]++
	if until := time.Now().Add(d); until.After(w.calm) {
		w.calm = until
	}
}

// stopped is called when a replica stops: its callers wait no more.
func (w *witness) stopped(p *replica) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tally["stop"]++
	for _, c := range w.lines[p] {
		if now := time.Now(); now.Before(c.leaves) {
			c.leaves = now
		}
	}
}
