package fxlock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/lockfx/lockfx"
)

// Leadership is an application's part in a campaign; see [Lead]. It is safe for
// concurrent use.
type Leadership struct {
	bound    *boundBody
	settings leadSettings
	term     atomic.Pointer[lockfx.Holder] // of the last term, or nil: it is not held any more once that is over
	trouble  atomic.Pointer[error]         // what keeps the campaign from being in good order, or nil

	mu          sync.Mutex // guards what follows
	subscribers []*subscriber
	campaign    *campaign // of the last start, or nil before the first
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

// Check is a readiness check, in the form that most health libraries take. It is nil
// while the application leads or stands by in good order, and after the term of
// [OneTerm]. It is an error before the start and after the stop, when the lock was
// disposed of, when the store failed at the last attempt, in the pause after a term or
// an attempt that failed, and while a term of an earlier start still runs. It asks
// nobody.
func (l *Leadership) Check(context.Context) error {
	l.mu.Lock()
	c := l.campaign
	l.mu.Unlock()
	switch trouble := l.trouble.Load(); {
	case c == nil:
		return l.fault(errNotBegun)
	case c.over():
		return c.verdict
	case trouble != nil:
		return *trouble
	}
	return nil
}

var (
	errNotBegun    = errors.New("the campaign has not begun")
	errOver        = errors.New("the campaign is over")
	errEarlierTerm = errors.New("a term of an earlier start still runs")
)

func (l *Leadership) fault(err error) error {
	return fmt.Errorf("lead %q: %w", l.bound.lock.Key(), err)
}

// setTrouble notes what keeps the campaign from being in good order.
func (l *Leadership) setTrouble(err error) { l.trouble.Store(&err) }

// hear follows the lock's own events for Check.
func (l *Leadership) hear(e lockfx.Event) {
	switch e.Kind {
	case lockfx.EventFailed:
		l.setTrouble(e.Err)
	case lockfx.EventLost:
		if e.Err != nil { // a heartbeat failed
			l.setTrouble(e.Err)
		}
	case lockfx.EventAcquired, lockfx.EventRefused:
		l.trouble.Store(nil)
	}
}
