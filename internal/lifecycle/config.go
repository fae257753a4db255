package lifecycle

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lockfx/lockfx"
)

// Config is what a [Machine] is made of. Zero durations take their defaults.
type Config struct {
	Name  string // in events; the key when empty
	Key   string
	Store lockfx.Store
	// TTL is the lease asked for.
	TTL time.Duration
	// Heartbeat is the time from one request to the next: TTL/3 by default, TTL/2
	// at most.
	Heartbeat time.Duration
	// ReleaseTimeout bounds giving a lease back, which goes on when the context of
	// its holder has ended: the smaller of TTL and 5 s by default.
	ReleaseTimeout time.Duration
	// RenewRetry makes a heartbeat that met an error be tried again until the local
	// deadline. A heartbeat that was refused is final all the same.
	RenewRetry bool
	// Clock is the system's by default.
	Clock lockfx.Clock
	// OnLost is called once for each lease lost.
	OnLost func(lockfx.Reason)
	// Observers receive every event, in order. They and OnLost are called outside
	// every mutex, one at a time, and their panics are contained. They may use the
	// lock. But an observer never waits for a run, nor calls Dispose during one: it may
	// be the run's own goroutine that calls it, and a body begins when the observers
	// know of the acquisition. OnLost may.
	//
	// At most 1,024 events wait for a slow callback; [lockfx.EventsDropped] then says
	// how many are left out. Losses are left out last, beyond twice as many.
	Observers []func(lockfx.Event)
	// CallTimeout bounds each call of the store. Without it an acquisition or a
	// heartbeat is bounded by the lease alone. 0 is no limit.
	CallTimeout time.Duration
	// Terms are those of every run and hold that names no others.
	Terms Terms
	// Last is the token that the next one must exceed: that of an earlier machine
	// of the same lock.
	Last lockfx.Token
}

const defaultReleaseTimeout = 5 * time.Second

// withDefaults fills in what is zero.
func (c Config) withDefaults() Config {
	if c.Name == "" {
		c.Name = c.Key
	}
	if c.Heartbeat == 0 {
		c.Heartbeat = c.TTL / 3
	}
	if c.ReleaseTimeout == 0 {
		c.ReleaseTimeout = min(c.TTL, defaultReleaseTimeout)
	}
	if c.Clock == nil {
		c.Clock = lockfx.SystemClock()
	}
	return c
}

// callbacks returns who is told of an event, in order.
func (c Config) callbacks() []func(lockfx.Event) {
	all := slices.Clone(c.Observers)
	if c.OnLost != nil {
		all = append(all, func(e lockfx.Event) {
			if e.Kind == lockfx.EventLost {
				c.OnLost(e.Reason)
			}
		})
	}
	return all
}

// Check returns every fault of c, each an error that matches [lockfx.ErrConfig].
func (c Config) Check() error {
	c = c.withDefaults()
	faults := []error{lockfx.CheckKey(c.Key), lockfx.CheckTTL(c.TTL, 1)}
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("%w: "+format, append([]any{lockfx.ErrConfig}, args...)...))
	}
	if c.Store == nil {
		fault("store is nil")
	}
	for i, observe := range c.Observers {
		if observe == nil {
			fault("observer %d of %d is nil", i+1, len(c.Observers))
		}
	}
	if c.TTL > 0 {
		switch {
		case c.Heartbeat <= 0:
			fault("heartbeat %v must be greater than 0", c.Heartbeat)
		case c.Heartbeat > c.TTL-c.Heartbeat:
			fault("heartbeat %v must be at most half the ttl of %v", c.Heartbeat, c.TTL)
		}
		if end, limit := c.Terms.MinHold, c.Terms.MaxHold; limit > 0 && end > limit {
			fault("min hold %v must be at most the max hold of %v", end, limit)
		}
		if c.ReleaseTimeout < 0 {
			fault("release timeout %v must be greater than 0", c.ReleaseTimeout)
		}
	}
	return errors.Join(faults...)
}
