package fxlock

import (
	"fmt"
	"slices"

	"github.com/lockfx/lockfx"
)

// LeadershipChange is what happened to a [Leadership].
type LeadershipChange uint8

// The changes, in the order in which a campaign goes through them. StandingBy,
// Elected and TermEnded take turns; StoodDown is the last one until the next start.
const (
	StandingBy LeadershipChange = iota + 1 // the campaign began, or goes on after a term
	Elected                                // a term begins: fn is about to run
	TermEnded                              // fn has returned and the lock was released; Err says what went wrong
	StoodDown                              // the campaign is over: a stop, a disposal, or the end of the term of OneTerm
)

var leadershipNames = [...]string{"none", "standing by", "elected", "term ended", "stood down"}

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
	Token  lockfx.Token // of the term, on Elected and TermEnded
	// Err, on TermEnded, is what went wrong: fn failed, or the lease was lost. That fn
	// returns the cause of its context when the application stops is in good order.
	Err error
}

// subscriber is a function that is told of changes.
type subscriber struct{ hear func(LeadershipEvent) }

// Subscribe makes f be called with every change from now on, in order, one at a
// time. The campaign waits for f, so f must be quick, and it must not stop the
// application; a panic of f ends the process. stop, which f itself may call, ends it
// without waiting for a call that is under way.
func (l *Leadership) Subscribe(f func(LeadershipEvent)) (stop func()) {
	s := &subscriber{f}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.subscribers = append(l.subscribers, s)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.subscribers = slices.DeleteFunc(slices.Clone(l.subscribers), func(other *subscriber) bool { return other == s })
	}
}

// tell calls the subscribers outside of the mutex. Only a campaign tells, and one
// campaign at a time, so the changes stay in order.
func (l *Leadership) tell(e LeadershipEvent) {
	for _, s := range l.subscribed() {
		if slices.Contains(l.subscribed(), s) { // no other has stopped it meanwhile
			s.hear(e)
		}
	}
}

func (l *Leadership) subscribed() []*subscriber {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.subscribers
}
