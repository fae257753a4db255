package campaign

import (
	"errors"
	"fmt"
	"time"

	"github.com/lockfx/lockfx"
)

// patience is how long the lock may be held without a function that runs: as long as fx
// gives the hooks of an application.
const patience = 15 * time.Second

var (
	// ErrNotBegun says that a campaign has not begun.
	ErrNotBegun = errors.New("the campaign has not begun")

	errOver    = errors.New("the campaign is over")
	errEnding  = errors.New("the campaign is ending")
	errEarlier = errors.New("a term of an earlier start still runs")
	errLeft    = errors.New("a term has ended, and its scope has not been torn down: a hook does not return")
)

// Check returns all that is not in order. When the campaign is over it says so, unless a
// good term was to be the last one.
func (c *Campaign) Check() error {
	if c.over() {
		return c.verdict
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if stuck := c.stuck(); stuck != nil || c.trouble != nil {
		return join(stuck, c.trouble)
	}
	if t := c.term; t != nil && t.hold != nil {
		return t.hold.Failure()
	}
	return nil
}

// Live returns what keeps a goroutine of this process from going on.
func (c *Campaign) Live() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stuck()
}

// Ready returns an error when the campaign ends or is over, unless a good term was to be
// the last one.
func (c *Campaign) Ready() error {
	switch {
	case c.over():
		return c.verdict
	case c.ctx.Err() != nil:
		return errEnding
	}
	return nil
}

// stuck returns why the campaign does not go on. c.mu is held.
func (c *Campaign) stuck() error {
	t := c.term
	switch {
	case c.earlier:
		return errEarlier
	case c.left != nil && c.left.State() != lockfx.StateReleased:
		return errLeft
	case t == nil || t.stage == standingBy:
		return nil
	case t.lost != nil:
		return fmt.Errorf("the term of token %d was lost (%v) and %s: %w", t.token, t.lost.Reason, t.stage, t.lost)
	case t.stage == running && !t.hold.Held(): // the process was suspended, and no timer has fired yet
		return fmt.Errorf("the term of token %d was lost (%v) and %s: %w", t.token, lockfx.ReasonExpired, t.stage, lockfx.ErrLost)
	case t.stage != running && time.Since(t.since) > patience:
		return fmt.Errorf("the lock is held with token %d, and for %v now %s", t.token, time.Since(t.since).Round(time.Millisecond), t.stage)
	}
	return nil
}

// String says what goes on in a stage in which the lock is held.
func (s stage) String() string {
	switch s {
	case preparing:
		return "its function has not begun: a condition, a constructor or a hook of its scope has not returned"
	case ending:
		return "its scope has not been torn down"
	default:
		return "its function still runs"
	}
}
