package campaign

import (
	"context"
	"errors"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/queue"
)

const (
	minStandBy = time.Second
	maxStandBy = 30 * time.Second

	// handOver is how long to stay out after MaxHold, so that those whom the store wakes
	// come first.
	handOver = 100 * time.Millisecond
)

// outcome is what an attempt came to.
type outcome struct {
	led  time.Duration // how long the function ran; 0 if it did not
	fn   error         // what it returned
	lost bool          // its lease was lost before it returned
	cut  error         // why its context had ended before it returned, or nil
	run  error         // what else the run came to

	maxHold bool  // MaxHold ended the term
	err     error // why the term, or the attempt, failed; or nil
	cleanup error // what failed after the function had returned
}

func (o *outcome) ran() bool { return o.led > 0 }

// settle tells apart why the term failed, and what failed after its function had
// returned. loss is that of its lease, or nil.
func (o *outcome) settle(loss *lockfx.LostError) {
	if !o.ran() {
		if !errors.Is(o.run, lockfx.ErrSkipped) { // a condition said no
			o.err = o.run
		}
		return
	}
	if o.lost && loss != nil {
		o.cut, o.maxHold = loss, loss.Reason == lockfx.ReasonMaxHold
	}
	o.err, o.cleanup = o.fn, o.run
	if o.echo() {
		o.err = nil
	}
	switch {
	case o.run == errEnded && o.fn == errEnded: //nolint:errorlint // what the run came to is unknown
		o.cleanup = nil
	case o.maxHold && o.run == error(loss): //nolint:errorlint // nothing but the loss
		o.cleanup = nil
	case o.lost && !o.maxHold:
		o.err, o.cleanup = join(o.err, o.run), nil
	}
}

// echo reports whether the function returned no more than that its context had ended.
func (o *outcome) echo() bool {
	ended := errors.Is(o.fn, context.Canceled) || errors.Is(o.fn, o.cut)
	return o.cut != nil && ended && !errors.Is(o.fn, lockfx.ErrStore)
}

// judge judges an attempt that has ended. It returns for how long to stay out, and
// whether the campaign is over.
func (c *Campaign) judge(o outcome) (pause time.Duration, over bool) {
	switch stopped := c.ctx.Err() != nil; {
	case o.ran() && o.err == nil && o.cut == nil && c.cfg.OneTerm:
		c.settle(nil, nil)
		over = true
	case stopped && !o.ran():
		return 0, true
	case stopped:
		over = true
	case o.err == nil:
		c.failures, pause = 0, c.cfg.Pause
		if o.maxHold {
			pause = min(pause, handOver)
		}
		c.settle(nil, errOver)
	default:
		if o.led >= c.cfg.TTL {
			c.failures = 0 // it is no fault that comes back at once
		}
		pause = queue.Jittered(min(minStandBy<<min(c.failures, 10), maxStandBy))
		c.failures++
		c.settle(o.err, errOver)
	}
	if o.err != nil || o.cleanup != nil {
		c.cfg.Failed(Failure{Led: o.led, Err: o.err, Cleanup: o.cleanup, Pause: pause})
	}
	return pause, over
}

// settle notes what Check says from now on, and what it says once the campaign is over.
func (c *Campaign) settle(trouble, verdict error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trouble, c.verdict = trouble, verdict
}

// join is errors.Join that returns a lone error as it is.
func join(first, second error) error {
	switch {
	case first == nil:
		return second
	case second == nil:
		return first
	}
	return errors.Join(first, second)
}
