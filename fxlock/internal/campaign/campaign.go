package campaign

import (
	"context"
	"sync"
	"time"

	"github.com/lockfx/lockfx"
)

// Config is what a campaign is made of.
type Config struct {
	Key  string // in messages
	Self string // the label of this application's leases
	// Lead waits for the lock and runs one term. It reports to t what happens on the way; its
	// error says why there was no term, or what a term came to besides what its function
	// returned.
	Lead    func(ctx context.Context, t *Term) error
	TTL     time.Duration // a term that lasted as long is no sign of a fault that repeats itself
	Pause   time.Duration // after a good term
	OneTerm bool          // the first good term is the last one
	// Notify is called with each change, in order, under a mutex: it must be quick.
	Notify func(Event)
	// Failed is called with what is reported nowhere else.
	Failed func(Failure)
}

// Change is what happened.
type Change uint8

// The changes.
const (
	StandingBy Change = iota + 1
	LeaderChanged
	Elected
	Lost
	TermEnded
	StoodDown
)

// Event is one change.
type Event struct {
	Change  Change
	Token   lockfx.Token  // of the term
	Hold    lockfx.Holder // on Elected
	Leader  string        // on LeaderChanged: the label of who leads
	Err     error         // on Lost: the loss; on TermEnded: why the term failed
	Cleanup error         // on TermEnded: what failed after the function had returned
}

// Failure is a term, or an attempt without one, that did not go well.
type Failure struct {
	Led     time.Duration // 0 for an attempt without a term
	Err     error         // why it failed, or nil
	Cleanup error         // what failed after the function had returned
	Pause   time.Duration // for how long to stay out
}

// Campaign is what one start of an application does to lead. It is safe for concurrent
// use.
type Campaign struct {
	cfg      Config
	ctx      context.Context // ends with the stop, and with the disposal of the lock
	cancel   context.CancelCauseFunc
	done     chan struct{} // closed at the end
	failures int           // terms and attempts that failed in a row; the loop's own

	mu      sync.Mutex // guards what follows, and the terms
	term    *Term      // the attempt under way, or nil
	left    Hold       // of the last attempt, or nil: its run may have left something running
	leader  string     // who leads, or is the last one who is known to have led
	earlier bool       // a term of an earlier start still runs
	trouble error      // of the last attempt, or nil
	verdict error      // what Check says once done is closed
}

// Start begins a campaign that ends with ctx, at the latest. It waits until earlier, which
// may be nil, has ended: there is one at a time.
func Start(ctx context.Context, cfg Config, earlier *Campaign) *Campaign {
	ctx, cancel := context.WithCancelCause(ctx)
	c := &Campaign{cfg: cfg, ctx: ctx, cancel: cancel, leader: cfg.Self, verdict: errOver, done: make(chan struct{})}
	if earlier != nil && !earlier.over() {
		c.earlier = true
		earlier.Stop(lockfx.ErrDisposed)
	}
	go func() {
		defer close(c.done)
		c.follow(earlier)
		c.run()
	}()
	return c
}

// follow waits until earlier, which may be nil, has ended.
func (c *Campaign) follow(earlier *Campaign) {
	if earlier == nil {
		return
	}
	<-earlier.done
	c.mu.Lock()
	defer c.mu.Unlock()
	c.earlier = false
}

// Stop makes the campaign end: it cancels the function of a term, and waits for nothing.
func (c *Campaign) Stop(cause error) { c.cancel(cause) }

// Done is closed when the campaign has ended and the lock was released.
func (c *Campaign) Done() <-chan struct{} { return c.done }

// Wait waits for that, or until end is closed, and reports whether the campaign has ended.
func (c *Campaign) Wait(end <-chan struct{}) bool {
	select {
	case <-c.done:
	case <-end:
	}
	return c.over()
}

func (c *Campaign) over() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// run stands by, leads, and stands by again, until it is over.
func (c *Campaign) run() {
	defer c.notify(Event{Change: StoodDown})
	for standing := false; c.ctx.Err() == nil; {
		if !standing {
			c.notify(Event{Change: StandingBy})
		}
		o := c.attempt()
		pause, over := c.judge(o)
		if over {
			return
		}
		standing = !o.ran()
		c.rest(pause)
	}
}

// notify passes e on. c.mu is not held.
func (c *Campaign) notify(e Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cfg.Notify(e)
}

// rest waits for d, or until the campaign is over.
func (c *Campaign) rest(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.ctx.Done():
	}
}
