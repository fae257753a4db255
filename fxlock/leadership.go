package fxlock

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock/internal/campaign"
	"github.com/lockfx/lockfx/fxlock/internal/graph"
	"github.com/lockfx/lockfx/fxlock/internal/notify"
)

// Leadership is an application's part in a campaign; see [Lead]. It is safe for
// concurrent use.
type Leadership struct {
	ready   *readyBody
	pause   time.Duration // see [TermPause]
	oneTerm bool
	term    atomic.Pointer[lockfx.Holder] // of the last term, or nil: it is not held any more once that is over
	hub     notify.Hub[LeadershipEvent]

	mu       sync.Mutex         // guards campaign
	campaign *campaign.Campaign // of the last start, or nil before the first
}

// IsLeader reports whether a term is under way and its lease can be trusted. It is false
// from the local deadline on, even if no timer has fired since. It takes no mutex and
// allocates nothing.
func (l *Leadership) IsLeader() bool {
	term := l.term.Load()
	return term != nil && (*term).Held()
}

// Token returns the fencing token of the current term, or 0 when IsLeader is false.
func (l *Leadership) Token() lockfx.Token {
	if term := l.term.Load(); term != nil {
		return (*term).Token()
	}
	return 0
}

// Leader asks the store who holds the lock now: a snapshot, for people. The lease is zero
// if the lock is free. If the store can't say, the error matches errors.ErrUnsupported, and
// if the store failed, [lockfx.ErrStore].
func (l *Leadership) Leader(ctx context.Context) (lockfx.Lease, error) {
	key, store := l.ready.lock.Key(), l.ready.lock.store
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

// StepDown ends the current term, if there is one: it cancels fn with the cause
// [ErrSteppedDown], waits until the lock is released, and pauses the campaign for
// [TermPause], so that another application can lead. If this application does not lead,
// StepDown does nothing. If ctx ends first, the error says which term has not ended; the
// lock is still released when fn returns. fn may call StepDown, which then does not wait
// for fn.
func (l *Leadership) StepDown(ctx context.Context) error {
	if c := l.present(); c != nil {
		return c.StepDown(ctx)
	}
	return nil
}

// patience is how long a subscriber may take for a change.
const patience = 5 * time.Second

// Check returns everything that is wrong, for alerts and for people; see [Leadership.Live]
// and [Leadership.Ready] for the probes of an orchestrator. It is nil while the application
// leads or stands by without a fault, and after the term of [OneTerm]. It is an error
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

// Live is the check for a liveness probe. It returns an error if a function of this process
// does not return, since a restart helps then. Any other fault, such as a store that is
// down, is nil. The cases:
//
//   - the lease was lost, and fn still runs: it ignores its context. The probe decides how
//     long fn may take to return, for example by its failureThreshold;
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

// Ready is the check for a readiness probe. It is nil from the start of the application to
// its stop, or to the disposal of the lock. It does not matter whether the application leads
// or the store can be reached: a replica that stands by still serves requests. If only the
// leader should get requests, use [Leadership.IsLeader].
func (l *Leadership) Ready(context.Context) error {
	c := l.present()
	if c == nil {
		return l.fault(campaign.ErrNotBegun)
	}
	return l.fault(c.Ready())
}

// LeadershipChange is what happened to a [Leadership].
type LeadershipChange uint8

// The changes. A campaign goes from LeadershipStandingBy, with or without a LeadershipMoved,
// to LeadershipElected, with or without LeadershipLost to LeadershipEnded, and after a pause
// to LeadershipStandingBy again. LeadershipStoodDown is the last one until the next start.
const (
	LeadershipStandingBy = LeadershipChange(campaign.StandingBy)    // the campaign began, or goes on after a term
	LeadershipMoved      = LeadershipChange(campaign.LeaderChanged) // another application leads now: see Leader
	LeadershipElected    = LeadershipChange(campaign.Elected)       // a term begins: fn is about to run, or runs already
	LeadershipLost       = LeadershipChange(campaign.Lost)          // the lease was lost, or MaxHold is over; fn may still run. Err says why
	LeadershipEnded      = LeadershipChange(campaign.TermEnded)     // the term is over: fn has returned and the lock was released
	LeadershipStoodDown  = LeadershipChange(campaign.StoodDown)     // the campaign is over: a stop, a disposal, or the end of the term of OneTerm
)

var leadershipNames = [...]string{"none", "standing by", "leader changed", "elected", "lost", "term ended", "stood down"}

// String returns the change in lower case, such as "elected".
func (c LeadershipChange) String() string {
	if int(c) < len(leadershipNames) {
		return leadershipNames[c]
	}
	return fmt.Sprintf("LeadershipChange(%d)", uint8(c))
}

// LeadershipEvent is one change.
type LeadershipEvent struct {
	Change LeadershipChange
	Token  lockfx.Token // of the term, on LeadershipElected, LeadershipLost and LeadershipEnded
	// Leader, on LeadershipMoved, is the label of the application that leads now. A campaign
	// that stands by learns it when the store refuses it, without an extra request: a store
	// that wakes its waiters refuses them at each change. Applications with the same label
	// ([WithLabel]) can't be distinguished.
	Leader string
	// Err, on LeadershipLost, is the [lockfx.LostError]. On LeadershipEnded it is why the term failed: fn
	// returned it, or the lease was lost before fn returned. It is nil if fn returned nil, and
	// if it returned the end of its context after [MaxHold], StepDown or the stop.
	Err error
	// Cleanup, on LeadershipEnded, is what failed after fn had returned: the teardown of its
	// scope, or the release. It does not make the term a failed one.
	Cleanup error
	// Missed is the number of changes right before this one that the subscriber was too
	// slow for.
	Missed int
}

// Subscribe calls f with the current state, once the application has started, and then with
// every change, in order, one at a time. f runs in a separate goroutine: fn, the campaign and
// other subscribers don't wait for it, so a change may be old when f gets it. Check
// [Leadership.IsLeader] before you act on it. A panic of f ends the process.
//
// If f falls behind by more than 64 changes it misses the oldest ones. If it takes more
// than 5 s for one, [Leadership.Check] says so. The application's stop waits for f, for at
// most 5 s. stop, which f may call too, ends the subscription without waiting for a call
// under way.
func (l *Leadership) Subscribe(f func(LeadershipEvent)) (stop func()) {
	var pcs [1]uintptr
	runtime.Callers(2, pcs[:])
	return l.hub.Subscribe("the subscriber of "+graph.Place(pcs[0]-1), func(e LeadershipEvent, missed int) {
		e.Missed = missed
		f(e)
	})
}

// present returns the campaign of the last start, or nil.
func (l *Leadership) present() *campaign.Campaign {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.campaign
}

// fault says whose fault err is, if it is one.
func (l *Leadership) fault(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("lead %q: %w", l.ready.lock.Key(), err)
}
