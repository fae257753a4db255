package fxlock

import (
	"cmp"
	"context"
	"errors"
	"time"

	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/waiting"
)

// campaign is what one start of the application does to lead:
//
//	standing by ──▶ elected ──▶ fn ──▶ term ended ──▶ pause ──▶ standing by ...
//	      └─────────────┴── the stop, or a disposal ─┴───┴──▶ stood down
type campaign struct {
	*Leadership
	ctx      context.Context // ends with the stop, and with the disposal of the lock
	cancel   context.CancelCauseFunc
	failures int // terms and attempts that failed in a row

	verdict error         // what Check says of it afterwards; to be read once done is closed
	done    chan struct{} // closed at the end
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
	ctx, cancel := context.WithCancelCause(l.bound.lock.machine.Load().Disposing())
	c := &campaign{Leadership: l, ctx: ctx, cancel: cancel, verdict: l.fault(errOver), done: make(chan struct{})}
	l.mu.Lock()
	earlier := l.campaign
	l.campaign = c
	l.mu.Unlock()
	l.trouble.Store(nil)
	if earlier != nil && earlier.over() {
		earlier = nil
	}
	if earlier != nil {
		l.setTrouble(l.fault(errEarlierTerm))
		earlier.cancel(lockfx.ErrDisposed)
	}
	go func() {
		defer close(c.done)
		if earlier != nil {
			<-earlier.done
			l.trouble.Store(nil)
		}
		c.run()
	}()
}

// stop ends the campaign: it cancels fn and waits until the lock was released. If
// ctx ends first, fx skips the lock's own hook, so the lock is disposed of here: the
// lease is not renewed any more, and the error says what still runs.
func (l *Leadership) stop(ctx context.Context) error {
	l.mu.Lock()
	c := l.campaign
	l.mu.Unlock()
	c.cancel(lockfx.ErrDisposed)
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return cmp.Or(l.bound.lock.Dispose(ctx), l.fault(context.Cause(ctx)))
	}
}

// over reports whether the campaign has ended.
func (c *campaign) over() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// run stands by, leads, and stands by again, until it is over.
func (c *campaign) run() {
	defer c.tell(LeadershipEvent{Change: StoodDown})
	for standing := false; c.ctx.Err() == nil; {
		if !standing {
			c.tell(LeadershipEvent{Change: StandingBy})
		}
		led, err := c.lead()
		if led > 0 && err == nil && c.settings.oneTerm {
			c.verdict = nil
			return
		}
		standing = led == 0
		c.rest(c.pause(led, err))
	}
}

var errEnded = errors.New("fn panicked or ended its goroutine")

// lead waits for the lock and runs one term. It returns how long fn ran, which is 0
// if there was no term. fn has a goroutine of its own: it may end it.
func (c *campaign) lead() (led time.Duration, err error) {
	err = errEnded
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var began time.Time
		var token lockfx.Token
		defer func() {
			if !began.IsZero() {
				led = max(time.Since(began), 1)
				ended := LeadershipEvent{Change: TermEnded, Token: token, Err: err}
				if c.orderly(err) {
					ended.Err = nil
				}
				c.tell(ended)
			}
		}()
		err = c.bound.callPlain(c.ctx, c.bound.run, func(h lockfx.Holder) {
			began, token = time.Now(), h.Token()
			c.term.Store(&h)
			c.tell(LeadershipEvent{Change: Elected, Token: token})
		})
	}()
	<-ended
	return led, err
}

// pause judges a term, or an attempt without one, and returns for how long to stay
// out.
func (c *campaign) pause(led time.Duration, err error) time.Duration {
	switch {
	case err == nil, led == 0 && errors.Is(err, lockfx.ErrSkipped): // a condition of the module said no
		c.failures = 0
		c.trouble.Store(nil)
		return c.settings.pause
	case c.ctx.Err() != nil:
		if led > 0 && !c.orderly(err) {
			c.log(led, err)
		}
		return 0
	case led >= c.bound.lock.settings.ttl:
		c.failures = 0 // a good term
	}
	pause := waiting.Jittered(min(minStandBy<<min(c.failures, 10), maxStandBy))
	c.failures++
	fault := c.fault(err)
	c.trouble.CompareAndSwap(nil, &fault) // the lock's own events say more
	c.log(led, err, zap.Duration("standing_by_in", pause))
	return pause
}

// orderly reports whether err says no more than that the campaign was told to end.
func (c *campaign) orderly(err error) bool {
	told := errors.Is(err, lockfx.ErrDisposed) || errors.Is(err, context.Canceled)
	return c.ctx.Err() != nil && told && !errors.Is(err, lockfx.ErrLost) && !errors.Is(err, lockfx.ErrStore)
}

// log tells of an error that nobody else hears of.
func (c *campaign) log(led time.Duration, err error, more ...zap.Field) {
	lock := c.bound.lock
	if lock.logger == nil {
		return
	}
	what := "campaign failed"
	if led > 0 {
		what, more = "term failed", append(more, zap.Duration("led_for", led))
	}
	more = append(more, zap.String("lock", lock.settings.name), keyField(lock.Key()), zap.Error(err))
	forLines(lock.logger).Warn(what, more...)
}

// rest waits for d, or until the campaign is over.
func (c *campaign) rest(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.ctx.Done():
	}
}
