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
	"github.com/lockfx/lockfx/internal/waiting"
)

// Leadership is an application's part in a campaign; see [Lead]. It is safe for
// concurrent use.
type Leadership struct {
	bound    *boundBody
	settings leadSettings
	term     atomic.Pointer[lockfx.Holder] // of the present term, or nil
	outage   atomic.Pointer[error]         // why the store could not be asked the last time, or nil

	telling sync.Mutex // held while subscribers are told, so that events stay in order

	mu          sync.Mutex // guards what follows
	subscribers map[*func(LeadershipEvent)]struct{}
	cancel      context.CancelCauseFunc
	done        chan struct{} // closed at the end of the campaign; nil before the first
	ended       error         // why the campaign ended by itself
}

// LeadershipChange is what happened to a [Leadership].
type LeadershipChange uint8

// The changes.
const (
	StandingBy LeadershipChange = iota + 1 // the campaign began, or goes on after a term
	Elected                                // a term begins
	TermEnded                              // a term is over: Err says why, nil if fn returned nil
	StoodDown                              // the campaign is over: Err is nil after a stop
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
	Err    error
}

// IsLeader reports whether a term is under way and its lease can be trusted: it is
// false from the local deadline on, whether or not anything has run since. It takes
// no mutex and allocates nothing.
func (l *Leadership) IsLeader() bool {
	term := l.term.Load()
	return term != nil && (*term).Held()
}

// Token returns the fencing token of the present term, or 0.
func (l *Leadership) Token() lockfx.Token {
	if term := l.term.Load(); term != nil {
		return (*term).Token()
	}
	return 0
}

// Leader asks the store who holds the lock now: a snapshot, for people. The lease is
// zero when nobody does. If the store can't tell, the error matches
// errors.ErrUnsupported.
func (l *Leadership) Leader(ctx context.Context) (lockfx.Lease, error) {
	inspector, ok := l.bound.lock.store.(lockfx.Inspector)
	if !ok {
		return lockfx.Lease{}, fmt.Errorf("leader of %q: %T is no lockfx.Inspector: %w",
			l.bound.lock.Key(), l.bound.lock.store, errors.ErrUnsupported)
	}
	return inspector.Inspect(ctx, l.bound.lock.Key())
}

// Check is a readiness check: nil while the application leads, or stands by in good
// order. It is an error when there is no campaign, and when the store could not be
// reached at the last attempt. Its form is that of most health libraries.
func (l *Leadership) Check(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := l.bound.lock.Key()
	switch {
	case l.done == nil:
		return fmt.Errorf("lead %q: the campaign has not begun", key)
	case l.ended != nil:
		return fmt.Errorf("lead %q: the campaign is over: %w", key, l.ended)
	}
	select {
	case <-l.done:
		return fmt.Errorf("lead %q: the campaign is over", key)
	default:
	}
	if err := l.outage.Load(); err != nil {
		return *err
	}
	return nil
}

// Subscribe makes f be called with every change from now on, in order, one at a
// time, by the goroutine of the campaign: f must be quick, and must not stop the
// application. stop ends it; f is not called any more once stop has returned, unless
// f itself calls stop.
func (l *Leadership) Subscribe(f func(LeadershipEvent)) (stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.subscribers == nil {
		l.subscribers = map[*func(LeadershipEvent)]struct{}{}
	}
	l.subscribers[&f] = struct{}{}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.subscribers, &f)
	}
}

func (l *Leadership) tell(e LeadershipEvent) {
	l.telling.Lock()
	defer l.telling.Unlock()
	l.mu.Lock()
	all := make([]*func(LeadershipEvent), 0, len(l.subscribers))
	for f := range l.subscribers {
		all = append(all, f)
	}
	l.mu.Unlock()
	for _, f := range all {
		(*f)(e)
	}
}

// hear follows the lock's own events for Check.
func (l *Leadership) hear(e lockfx.Event) {
	switch e.Kind {
	case lockfx.EventFailed:
		l.outage.Store(&e.Err)
	case lockfx.EventAcquired, lockfx.EventRefused:
		l.outage.Store(nil)
	}
}

// hook starts the campaign and stops it.
func (l *Leadership) hook() fx.Hook {
	return fx.Hook{
		OnStart: func(context.Context) error { // its context ends with the start
			ctx, cancel := context.WithCancelCause(context.Background())
			done := make(chan struct{})
			l.mu.Lock()
			l.cancel, l.done, l.ended = cancel, done, nil
			l.mu.Unlock()
			go func() {
				defer close(done)
				l.campaign(ctx)
			}()
			return nil
		},
		OnStop: func(ctx context.Context) error {
			l.mu.Lock()
			cancel, done := l.cancel, l.done
			l.mu.Unlock()
			cancel(lockfx.ErrDisposed)
			select {
			case <-done:
				return nil
			case <-ctx.Done():
				return fmt.Errorf("stand down from %q: the term still runs: %w", l.bound.lock.Key(), context.Cause(ctx))
			}
		},
	}
}

// campaign stands by, leads, and stands by again, until ctx ends.
func (l *Leadership) campaign(ctx context.Context) {
	var failures int
	var err error
	for ctx.Err() == nil {
		l.tell(LeadershipEvent{Change: StandingBy})
		var began time.Time
		began, err = l.lead(ctx)
		pause := l.settings.pause
		switch {
		case ctx.Err() != nil:
		case err == nil && l.settings.oneTerm:
			l.standDown(nil)
			return
		case errors.Is(err, lockfx.ErrDisposed):
			l.standDown(err)
			return
		case err != nil:
			if !began.IsZero() && time.Since(began) >= l.bound.lock.settings.ttl {
				failures = 0 // a good term
			}
			pause = standBy(failures)
			failures++
			l.log(err, pause)
		default:
			failures = 0
		}
		rest(ctx, pause)
	}
	l.standDown(nil)
}

// lead waits for the lock and runs one term. began is zero if there was none.
func (l *Leadership) lead(ctx context.Context) (began time.Time, err error) {
	var token lockfx.Token
	defer func() { // also if fn panics or ends the goroutine
		l.term.Store(nil)
		if !began.IsZero() {
			l.tell(LeadershipEvent{Change: TermEnded, Token: token, Err: err})
		}
	}()
	err = l.bound.callPlain(ctx, func(h lockfx.Holder) {
		began, token = time.Now(), h.Token()
		l.term.Store(&h)
		l.tell(LeadershipEvent{Change: Elected, Token: token})
	})
	return began, err
}

// standDown notes why the campaign ended.
func (l *Leadership) standDown(err error) {
	l.mu.Lock()
	l.ended = err
	l.mu.Unlock()
	l.tell(LeadershipEvent{Change: StoodDown, Err: err})
}

// log tells of an error that nobody else hears of.
func (l *Leadership) log(err error, pause time.Duration) {
	if logger := l.bound.lock.logger; logger != nil {
		logger.Named("fxlock").Warn("term ended", zap.String("lock", l.bound.lock.settings.name),
			keyField(l.bound.lock.Key()), zap.Duration("standing_by_in", pause), zap.Error(err))
	}
}

// standBy returns how long to pause after so many failures in a row.
func standBy(failures int) time.Duration {
	return waiting.Jittered(min(minStandBy<<min(failures, 10), maxStandBy))
}

// rest waits for d, or until ctx ends.
func rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
