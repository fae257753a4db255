package fxlock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock/internal/campaign"
	"github.com/lockfx/lockfx/fxlock/internal/notify"
	"github.com/lockfx/lockfx/internal/lifecycle"
)

// Leadership is an application's part in a campaign; see [Lead]. It is safe for
// concurrent use.
type Leadership struct {
	bound    *boundBody
	settings leadSettings
	term     atomic.Pointer[lockfx.Holder] // of the last term, or nil: it is not held any more once that is over
	hub      notify.Hub[LeadershipEvent]

	mu       sync.Mutex         // guards campaign
	campaign *campaign.Campaign // of the last start, or nil before the first
}

// IsLeader reports whether a term is under way and its lease can be trusted: it is
// false from the local deadline on, whether or not anything has run since. It takes
// no mutex and allocates nothing.
func (l *Leadership) IsLeader() bool {
	term := l.term.Load()
	return term != nil && (*term).Held()
}

// Token returns the fencing token of the present term, or 0 when IsLeader is false.
func (l *Leadership) Token() lockfx.Token {
	if term := l.term.Load(); term != nil {
		return (*term).Token()
	}
	return 0
}

// Leader asks the store who holds the lock now: a snapshot, for people. The lease is
// zero when nobody does. If the store can't tell, the error matches
// errors.ErrUnsupported, and if it failed, [lockfx.ErrStore].
func (l *Leadership) Leader(ctx context.Context) (lockfx.Lease, error) {
	key, store := l.bound.lock.Key(), l.bound.lock.store
	inspector, ok := store.(lockfx.Inspector)
	if !ok {
		return lockfx.Lease{}, fmt.Errorf("leader of %q: %T is no lockfx.Inspector: %w", key, store, errors.ErrUnsupported)
	}
	lease, err := inspector.Inspect(ctx, key)
	switch {
	case errors.Is(err, lockfx.ErrStore):
		return lockfx.Lease{}, fmt.Errorf("leader of %q: %w", key, err)
	case err != nil:
		return lockfx.Lease{}, fmt.Errorf("leader of %q: %w: %w", key, lockfx.ErrStore, err)
	}
	return lease, nil
}

// ErrSteppedDown is the cause of the context of a term that [Leadership.StepDown] ended.
var ErrSteppedDown = campaign.ErrSteppedDown

// StepDown ends the present term, if there is one: it cancels fn with the cause
// [ErrSteppedDown], waits until the lock was released, and leaves the application out for
// [TermPause], so that another one leads. Then it campaigns again. When it does not lead,
// nothing happens. If ctx ends first, the error says which term has not ended; the lock is
// still released when fn does return. fn itself may call it, and is not waited for.
func (l *Leadership) StepDown(ctx context.Context) error {
	if c := l.present(); c != nil {
		return c.StepDown(ctx)
	}
	return nil
}

// present returns the campaign of the last start, or nil.
func (l *Leadership) present() *campaign.Campaign {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.campaign
}

// hook starts a campaign with the application, and stops it.
func (l *Leadership) hook() fx.Hook {
	return fx.Hook{
		OnStart: func(context.Context) error { // its context ends with the start
			l.start()
			return nil
		},
		OnStop: l.stop,
	}
}

// start begins a campaign. An earlier one is still there if fx had no time left to
// stop it; it ends first, so that there is one at a time.
func (l *Leadership) start() {
	lock := l.bound.lock
	self := lockfx.LabelFrom(lock.labelled(context.Background(), l.bound.run.label))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.campaign = campaign.Start(lock.machine.Load().Disposing(), campaign.Config{
		Key: lock.Key(), Self: self, TTL: lock.settings.ttl, Pause: l.settings.pause, OneTerm: l.settings.oneTerm,
		Lead: l.lead, Tell: l.hear, Failed: l.log,
	}, l.campaign)
}

// lead waits for the lock and runs one term.
func (l *Leadership) lead(ctx context.Context, t *campaign.Term) error {
	return l.bound.callPlain(ctx, &callbacks{
		missed:  t.Missed,
		granted: func(h *lifecycle.Hold) { t.Granted(h) },
		body:    func(_ *lifecycle.Hold, call func() error) { t.Run(call) },
	})
}

// stop ends the campaign: it cancels fn and waits until the lock was released, and until
// the subscribers have heard of it.
func (l *Leadership) stop(ctx context.Context) error {
	ctx = l.bound.lock.stopBegins(ctx)
	c := l.present()
	c.Stop(lockfx.ErrDisposed)
	select {
	case <-c.Done():
	case <-ctx.Done():
		return l.fault(fmt.Errorf("the term still runs: %w", context.Cause(ctx)))
	}
	l.hub.Drain(ctx.Done(), patience)
	return l.fault(l.hub.Blocked(0))
}

// log tells of an error that nobody else hears of.
func (l *Leadership) log(f campaign.Failure) {
	what := "campaign failed"
	var fields []zap.Field
	if f.Led > 0 {
		what, fields = "term failed", append(fields, zap.Duration("led_for", f.Led))
	}
	if f.Pause > 0 {
		fields = append(fields, zap.Duration("standing_by_in", f.Pause))
	}
	if f.Err != nil {
		l.bound.lock.warn(what, append(fields, zap.Error(f.Err))...)
	}
	if f.Cleanup != nil {
		l.bound.lock.warn("cleanup of a term failed", append(fields, zap.Error(f.Cleanup))...)
	}
}

// patience is how long a subscriber may take for a change.
const patience = 5 * time.Second

// Check returns all that is not in order, for alerts and for people: see [Leadership.Live]
// and [Leadership.Ready] for the probes of an orchestrator. It is nil while the application
// leads or stands by in good order, and after the term of [OneTerm]. It is an error
//
//   - before the start and after the stop, and when the lock was disposed of;
//   - when the store failed at the last attempt, or at the last heartbeat ([WithRenewRetry]),
//     and in the pause after a term or an attempt that failed;
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
