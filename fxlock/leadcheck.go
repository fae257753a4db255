package fxlock

import (
	"context"
	"errors"
	"fmt"

	"github.com/lockfx/lockfx/fxlock/internal/campaign"
)

// Check returns all that is not in order, for alerts and for people: see [Leadership.Live]
// and [Leadership.Ready] for the probes of an orchestrator. It is nil while the application
// leads or stands by in good order, and after the term of [OneTerm]. It is an error
//
//   - before the start and after the stop, and when the lock was disposed of;
//   - when the store failed at the last attempt, and in the pause after a term or an
//     attempt that failed;
//   - in all cases of Live.
//
// It does not ask the store. The argument is not used: it is there for health libraries.
func (l *Leadership) Check(context.Context) error {
	c := l.present()
	if c == nil {
		return l.fault(campaign.ErrNotBegun)
	}
	return l.fault(errors.Join(c.Check(), l.hub.Blocked(patience)))
}

// Live is the check for a liveness probe: it returns an error if a function of this
// process does not return, against which a restart is the remedy, and if nothing else is
// wrong, such as a store that is down, nil. The cases:
//
//   - the lease was lost, and fn still runs: it does not heed its context. The time that fn
//     may take to return is the probe's, such as its failureThreshold;
//   - the lock is held and fn has not begun, or has returned, for more than 15 s: a
//     condition, a constructor or a hook of the run does not return;
//   - a term of an earlier start still runs;
//   - a function given to [Leadership.Subscribe] has not returned for more than 5 s.
func (l *Leadership) Live(context.Context) error {
	c := l.present()
	if c == nil {
		return nil
	}
	return l.fault(errors.Join(c.Live(), l.hub.Blocked(patience)))
}

// Ready is the check for a readiness probe: it is nil from the start of the application
// to its stop, or the disposal of the lock, whether or not it leads, and whether or not the
// store can be reached: a replica that stands by serves its requests all the same. Where
// the leader alone is to get requests, [Leadership.IsLeader] is the check.
func (l *Leadership) Ready(context.Context) error {
	c := l.present()
	if c == nil {
		return l.fault(campaign.ErrNotBegun)
	}
	return l.fault(c.Ready())
}

// fault says whose fault err is, if it is one.
func (l *Leadership) fault(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("lead %q: %w", l.bound.lock.Key(), err)
}
