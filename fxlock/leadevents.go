package fxlock

import (
	"fmt"
	"runtime"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock/internal/campaign"
	"github.com/lockfx/lockfx/fxlock/internal/graph"
)

// LeadershipChange is what happened to a [Leadership].
type LeadershipChange uint8

// The changes. A campaign goes from StandingBy, with or without a LeaderChanged, to
// Elected, with or without Lost to TermEnded, and after a pause to StandingBy again.
// StoodDown is the last one until the next start.
const (
	StandingBy    = LeadershipChange(campaign.StandingBy)    // the campaign began, or goes on after a term
	LeaderChanged = LeadershipChange(campaign.LeaderChanged) // another application leads now: see Leader
	Elected       = LeadershipChange(campaign.Elected)       // a term begins: fn is about to run, or runs already
	Lost          = LeadershipChange(campaign.Lost)          // the lease was lost, or MaxHold is over; fn may still run. Err says why
	TermEnded     = LeadershipChange(campaign.TermEnded)     // fn has returned and the lock was released
	StoodDown     = LeadershipChange(campaign.StoodDown)     // the campaign is over: a stop, a disposal, or the end of the term of OneTerm
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
	Token  lockfx.Token // of the term, on Elected, Lost and TermEnded
	// Leader, on LeaderChanged, is the label of the application that leads now. A campaign
	// that stands by learns it when the store refuses it, which it does not ask for: a
	// store that wakes those who wait refuses them at each change. Applications that have
	// the same label ([WithLabel]) are not told apart.
	Leader string
	// Err, on Lost, is the [lockfx.LostError]. On TermEnded it is why the term failed: fn
	// returned it, or the lease was lost before fn returned. It is nil if fn returned nil, and
	// if it returned the end of its context after [MaxHold], StepDown or the stop.
	Err error
	// Cleanup, on TermEnded, is what failed after fn had returned: the teardown of its
	// scope, or the release. A term does not fail of it.
	Cleanup error
	// Missed is the number of changes right before this one that the subscriber was too
	// slow for.
	Missed int
}

// Subscribe makes f be called with the present state, once the application was started,
// and then with every change, in order, one at a time. f has a goroutine of its own:
// neither fn, nor the campaign, nor other subscribers wait for it, so a change may be old
// when f hears of it; whoever is about to act asks [Leadership.IsLeader]. A panic of f
// ends the process.
//
// If f falls behind by more than 64 changes it misses the oldest ones. If it takes more
// than 5 s for one, [Leadership.Check] says so. The application's stop waits for f, for as
// long. stop, which f itself may call, ends the subscription without waiting for a call
// under way.
func (l *Leadership) Subscribe(f func(LeadershipEvent)) (stop func()) {
	var pcs [1]uintptr
	runtime.Callers(2, pcs[:])
	return l.hub.Subscribe("the subscriber of "+graph.Place(pcs[0]-1), func(e LeadershipEvent, missed int) {
		e.Missed = missed
		f(e)
	})
}

// hear hands on what happens to a campaign.
func (l *Leadership) hear(e campaign.Event) {
	if e.Change == campaign.Elected {
		l.term.Store(&e.Hold)
	}
	told := LeadershipEvent{Change: LeadershipChange(e.Change), Token: e.Token, Leader: e.Leader, Err: e.Err, Cleanup: e.Cleanup}
	if e.Change == campaign.LeaderChanged {
		l.hub.TellMore(told)
	} else {
		l.hub.Tell(told)
	}
}
