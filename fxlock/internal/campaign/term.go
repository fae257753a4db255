package campaign

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockfx/lockfx"
)

// Hold is the acquisition of a term.
type Hold interface {
	lockfx.Holder
	// Failure returns the last failure to renew since the store confirmed the lease, or nil.
	Failure() error
	// OnLost makes f be called once when the lease is lost, on a goroutine of its own.
	OnLost(f func(*lockfx.LostError))
}

// Term is one attempt to lead, and the term that it may become. Its methods are for
// [Config.Lead].
type Term struct {
	c      *Campaign
	ctx    context.Context
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when the lock was released

	// Guarded by c.mu.
	hold  Hold
	token lockfx.Token
	stage stage
	since time.Time         // of the stage
	lost  *lockfx.LostError // or nil
	out   outcome
}

// stage is how far an attempt is.
type stage uint8

const (
	standingBy stage = iota // for the lock
	preparing               // the lock is held, and the function has not begun
	running                 // the function runs
	ending                  // the function has returned, and the lock is still held
)

var (
	// ErrSteppedDown is the cause of the context of a term that StepDown ended.
	ErrSteppedDown = errors.New("the leader steps down")

	errEnded = errors.New("fn panicked or ended its goroutine")
)

// attempt waits for the lock and runs one term. The function has a goroutine of its own:
// it may end it.
func (c *Campaign) attempt() outcome {
	t := &Term{c: c, done: make(chan struct{})}
	t.ctx, t.cancel = context.WithCancelCause(c.ctx)
	defer t.cancel(nil)
	c.mu.Lock()
	c.term = t
	c.mu.Unlock()
	go func() {
		err := errEnded
		defer func() { t.end(err) }()
		err = c.cfg.Lead(t.ctx, t)
	}()
	<-t.done
	return t.out
}

// Missed is to be called when an attempt did not get the lock: another holds it, or the
// store failed.
func (t *Term) Missed(err error) {
	c := t.c
	c.mu.Lock()
	defer c.mu.Unlock()
	var refusal *lockfx.NotAcquiredError
	if !errors.As(err, &refusal) {
		c.trouble = err
		return
	}
	c.trouble = nil
	if refusal.HeldBy != "" && refusal.HeldBy != c.leader {
		c.leader = refusal.HeldBy
		c.cfg.Notify(Event{Change: LeaderChanged, Leader: c.leader})
	}
}

// Granted is to be called when the lock is held.
func (t *Term) Granted(h Hold) {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	t.hold, t.token = h, h.Token()
	t.enter(preparing)
	h.OnLost(t.lose)
}

// Run runs the function of the term.
func (t *Term) Run(fn func() error) {
	t.begin()
	err := errEnded
	defer func() { t.returned(err) }()
	err = fn()
}

func (t *Term) begin() {
	c := t.c
	c.mu.Lock()
	defer c.mu.Unlock()
	t.enter(running)
	c.leader, c.trouble = c.cfg.Self, nil
	c.cfg.Notify(Event{Change: Elected, Token: t.token, Hold: t.hold})
}

// returned notes what the function returned, and why its context had ended by then.
func (t *Term) returned(err error) {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	t.out.fn, t.out.cut = err, context.Cause(t.ctx)
	t.out.lost = !t.hold.Held()
	t.out.led = max(time.Since(t.since), 1)
	t.enter(ending)
}

// enter enters a stage. c.mu is held.
func (t *Term) enter(s stage) { t.stage, t.since = s, time.Now() }

// lose reports the loss of a term. It may come late: after the end of the term it is ignored.
func (t *Term) lose(loss *lockfx.LostError) {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	t.loseOnce(loss)
}

func (t *Term) loseOnce(loss *lockfx.LostError) {
	if t.lost != nil || t.c.term != t {
		return
	}
	t.lost = loss
	if t.stage >= running {
		t.c.cfg.Notify(Event{Change: Lost, Token: t.token, Err: loss})
	}
}

// end ends the attempt. run is what its run came to.
func (t *Term) end(run error) {
	c := t.c
	c.mu.Lock()
	defer c.mu.Unlock()
	t.out.run = run
	if t.out.ran() {
		var loss *lockfx.LostError
		if errors.As(run, &loss) && loss.Token == t.token {
			t.loseOnce(loss)
		}
	}
	t.out.settle(t.lost)
	if t.out.ran() {
		c.cfg.Notify(Event{Change: TermEnded, Token: t.token, Err: t.out.err, Cleanup: t.out.cleanup})
	}
	c.term, c.left = nil, t.hold
	close(t.done)
}

// StepDown ends the term that is under way, if there is one, and waits until the lock was
// released or ctx ends.
func (c *Campaign) StepDown(ctx context.Context) error {
	c.mu.Lock()
	t := c.term
	if t == nil || t.stage < running {
		c.mu.Unlock()
		return nil
	}
	c.mu.Unlock()
	t.cancel(ErrSteppedDown)
	select {
	case <-t.done:
		return nil
	case <-ctx.Done():
	}
	cause := context.Cause(ctx)
	if errors.Is(cause, ErrSteppedDown) {
		return nil // the function itself asks: the term ends when it returns
	}
	return fmt.Errorf("lead %q: step down: the term of token %d has not ended: %w", c.cfg.Key, t.token, cause)
}
