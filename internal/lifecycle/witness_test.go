package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/lifecycle"
)

// lock is what a schedule drives: a machine, or one with a planted fault.
type lock interface {
	Acquire(context.Context) (bool, error)
	Release(context.Context) (bool, error)
	Tick(context.Context) (bool, error)
	Run(context.Context, func(context.Context, *lifecycle.Hold) error) error
	Dispose(context.Context) error
	State() lockfx.State
	Held() bool
	Token() lockfx.Token
}

// lease is what the witness knows of one grant.
type lease struct {
	deadline  time.Time // from then on nobody may trust it
	accepted  bool
	lost      *lockfx.Event
	released  bool // the hold is over
	gaveBack  int  // how often the store was asked to release it
	gaveAt    time.Time
	renewing  int
	inBody    bool
	mustLose  bool      // a heartbeat failed for good while it was held
	failedAt  time.Time // when the last heartbeat did that
	refusedAt time.Time // when the last one was answered with false
	renewedAt time.Time // when the last one ended
}

// witness is the store of a schedule, erratic but legal, and the observer. It
// knows what a lock may do, and notes what it should not have done.
type witness struct {
	cfg  lifecycle.Config
	lock lock

	mu     sync.Mutex
	random *rand.Rand
	last   lockfx.Token
	leases map[lockfx.Token]*lease
	open   lockfx.Token // the hold that events say is open
	lost   []lockfx.Reason
	onLost []lockfx.Reason
	done   bool // disposed of, and nothing may follow
	faults []string
	tally  tally
}

// tally counts what happened, such as "renewed" or "lost: expired".
type tally map[string]int

func (t tally) add(other tally) {
	for what, n := range other {
		t[what] += n
	}
}

func (w *witness) faultf(format string, args ...any) { // w.mu is held
	w.faults = append(w.faults, fmt.Sprintf(format, args...))
}

// roll returns a number below n.
func (w *witness) roll(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.random.IntN(n)
}

func (w *witness) upTo(d time.Duration) time.Duration {
	return time.Duration(w.roll(int(d))) + 1
}

func (w *witness) trusted() time.Duration { return w.cfg.TTL - lifecycle.Margin(w.cfg.TTL) }

// look checks that nobody trusts a lease whose deadline has passed.
func (w *witness) look() {
	now := time.Now()
	token, held := w.lock.Token(), w.lock.Held()
	w.mu.Lock()
	defer w.mu.Unlock()
	if token != 0 && !w.trustedAt(token, now) {
		w.faultf("token %v is shown after its deadline", token)
	}
	if held {
		for token := range w.leases {
			if w.trustedAt(token, now) {
				return
			}
		}
		w.faultf("held after the deadline")
	}
}

func (w *witness) trustedAt(token lockfx.Token, now time.Time) bool {
	l := w.leases[token]
	return l != nil && now.Before(l.deadline)
}

// extend moves the deadline of token, and looks again when it has come.
func (w *witness) extend(token lockfx.Token, asked time.Time) { // w.mu is held
	l := w.leases[token]
	l.deadline = asked.Add(w.trusted())
	time.AfterFunc(time.Until(l.deadline), w.look)
}

func (w *witness) Acquire(ctx context.Context, _ string, _ time.Duration) (lockfx.Grant, error) {
	w.look()
	asked := time.Now()
	switch w.roll(12) {
	case 0:
		return lockfx.Grant{HeldBy: "another"}, nil
	case 1:
		return lockfx.Grant{}, errBoom
	case 2:
		panic(errBoom)
	case 3:
		runtime.Goexit()
	case 4:
		<-ctx.Done()
		return lockfx.Grant{}, ctx.Err()
	case 5:
		return lockfx.Grant{OK: true}, nil
	case 6:
		time.Sleep(w.upTo(2 * w.cfg.TTL)) // deaf to ctx, and perhaps too late
	case 7:
		time.Sleep(w.upTo(w.cfg.TTL / 2))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last += 1 + lockfx.Token(w.random.IntN(3))
	w.leases[w.last] = &lease{}
	w.extend(w.last, asked)
	return lockfx.Grant{OK: true, Token: w.last}, nil
}

func (w *witness) Renew(ctx context.Context, _ string, token lockfx.Token, _ time.Duration) (ok bool, err error) {
	asked := time.Now()
	w.look()
	w.mu.Lock()
	w.tally["renewals"]++
	l := w.leases[token]
	switch {
	case l == nil:
		w.faultf("renewal of token %v, which was not granted", token)
		l = &lease{}
	case l.renewing > 0:
		w.faultf("two renewals of token %v overlap", token)
	case l.released || l.gaveBack > 0:
		w.faultf("renewal of token %v after its release", token)
	case l.lost != nil:
		w.faultf("renewal of token %v after its loss", token)
	}
	l.renewing++
	w.mu.Unlock()
	answered := false
	defer func() { w.endRenew(token, asked, ok, answered && err == nil) }()
	ok, err = w.renew(ctx)
	answered = true
	return ok, err
}

// renew is one of the ways to answer a heartbeat.
func (w *witness) renew(ctx context.Context) (bool, error) {
	switch w.roll(20) {
	case 0:
		return false, nil
	case 1:
		return w.roll(2) == 0, errBoom
	case 2:
		panic("boom")
	case 3:
		runtime.Goexit()
	case 4:
		<-ctx.Done()
		return false, context.Cause(ctx)
	case 5:
		select {
		case <-time.After(w.upTo(w.cfg.TTL)):
		case <-ctx.Done():
			return false, ctx.Err()
		}
	case 6: // deaf to ctx, but a release waits for as long as that
		time.Sleep(w.upTo(w.cfg.ReleaseTimeout))
	case 7:
		return false, context.Canceled
	}
	return true, nil
}

func (w *witness) endRenew(token lockfx.Token, asked time.Time, ok, answered bool) {
	now := time.Now()
	held := w.lock.State() == lockfx.StateHeld
	w.mu.Lock()
	l := w.leases[token]
	l.renewing--
	switch {
	case !now.Before(l.deadline): // whatever the answer, it is too late
	case answered && ok:
		w.extend(token, asked)
	case answered || !w.cfg.RenewRetry:
		l.failedAt = now
		l.mustLose = l.mustLose || held && w.open == token
		if answered {
			l.refusedAt = now
		}
	}
	l.renewedAt = now
	w.mu.Unlock()
	w.look()
}

func (w *witness) Release(ctx context.Context, _ string, token lockfx.Token) (bool, error) {
	w.look()
	w.mu.Lock()
	l := w.leases[token]
	switch {
	case l == nil:
		w.faultf("release of token %v, which was not granted", token)
		l = &lease{}
	case l.renewing > 0:
		w.faultf("release of token %v during its renewal", token)
	case l.inBody:
		w.faultf("release of token %v under its body", token)
	case l.gaveBack > 0:
		w.faultf("second release of token %v", token)
	case l.lost != nil && l.lost.Reason == lockfx.ReasonHeartbeatFailed:
		w.faultf("release of token %v, which is known to be lost", token)
	}
	l.gaveBack++
	l.gaveAt = time.Now()
	w.mu.Unlock()
	switch w.roll(8) {
	case 0:
		return false, nil
	case 1:
		return true, errBoom
	case 2:
		panic(errBoom)
	case 3:
		runtime.Goexit()
	case 4:
		<-ctx.Done()
		return false, ctx.Err()
	case 5:
		time.Sleep(w.upTo(w.cfg.ReleaseTimeout))
	}
	return true, nil
}

// observe checks the order of events, and when a loss came.
func (w *witness) observe(e lockfx.Event) {
	w.look()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.done {
		w.faultf("%v after the end", e)
	}
	w.tally[e.Kind.String()]++
	l := w.leases[e.Token]
	switch e.Kind {
	case lockfx.EventAcquired:
		if w.open != 0 {
			w.faultf("%v while token %v is held", e, w.open)
		}
		if l.accepted {
			w.faultf("%v again", e)
		}
		w.open = e.Token
		l.accepted = true
	case lockfx.EventLost:
		w.tally["lost: "+e.Reason.String()]++
		w.lost = append(w.lost, e.Reason)
		if w.open != e.Token || l.lost != nil {
			w.faultf("%v while token %v is held", e, w.open)
			return
		}
		l.lost = &e
		w.judge(l, e)
	case lockfx.EventReleased:
		if w.open != e.Token || l.released {
			w.faultf("%v while token %v is held", e, w.open)
			return
		}
		l.released = true
		w.open = 0
		if l.mustLose && l.lost == nil && l.gaveAt.After(l.failedAt) {
			w.faultf("%v, although its heartbeat failed", e)
		}
		if l.lost == nil && !l.gaveAt.Before(l.deadline) && !l.gaveAt.Equal(l.renewedAt) { // it did not wait for a renewal
			w.faultf("%v, although its deadline had passed", e)
		}
	case lockfx.EventRenewFailed:
		if !w.cfg.RenewRetry {
			w.faultf("%v, although heartbeats are strict", e)
		}
	}
}

// judge checks the instant of a loss. w.mu is held.
func (w *witness) judge(l *lease, e lockfx.Event) {
	at := e.At
	switch e.Reason {
	case lockfx.ReasonExpired, lockfx.ReasonDisposed:
		if !at.Equal(l.deadline) {
			w.faultf("%v %v after its deadline", e, at.Sub(l.deadline))
		}
	case lockfx.ReasonHeartbeatFailed:
		if !at.Equal(l.refusedAt) {
			w.faultf("%v, but no renewal was refused then", e)
		}
	case lockfx.ReasonStoreError:
		if w.cfg.RenewRetry || !at.Equal(l.failedAt) {
			w.faultf("%v, but no renewal failed then", e)
		}
	default:
		w.faultf("%v for no reason", e)
	}
}

func (w *witness) hearLoss(r lockfx.Reason) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.onLost = append(w.onLost, r)
}

// run runs one body that behaves in some way, and checks what comes back.
func (w *witness) run(ctx context.Context) {
	lasts, how, obeys := w.upTo(2*w.cfg.TTL), w.roll(6), w.roll(2) == 0
	var token lockfx.Token
	o := <-spawn(func() error {
		return w.lock.Run(ctx, func(ctx context.Context, h *lifecycle.Hold) error {
			w.mu.Lock()
			token = lockfx.TokenFrom(ctx)
			w.leases[token].inBody = true
			w.mu.Unlock()
			defer func() {
				w.mu.Lock()
				w.leases[token].inBody = false
				w.mu.Unlock()
			}()
			timer := time.NewTimer(lasts)
			defer timer.Stop()
			if obeys {
				select {
				case <-timer.C:
				case <-ctx.Done():
				}
			} else {
				<-timer.C
			}
			w.look()
			if now := time.Now(); h.Held() {
				w.mu.Lock()
				if !w.trustedAt(token, now) {
					w.faultf("the hold of token %v is held after its deadline", token)
				}
				w.mu.Unlock()
			}
			switch how {
			case 0:
				panic(panicValue)
			case 1:
				runtime.Goexit()
			case 2:
				return errBody
			}
			return nil
		})
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	switch l := w.leases[token]; {
	case token == 0 && o.err == nil && o.returned:
		w.faultf("a run without a body returned nil")
	case token == 0 || !o.returned:
	case how == 2 && !errors.Is(o.err, errBody):
		w.faultf("the error of the body was lost: %v", o.err)
	case l.lost != nil && !errors.Is(o.err, lockfx.ErrLost):
		w.faultf("token %v was lost, and its run returned %v", token, o.err)
	}
}

// end checks what is left once the lock was disposed of.
func (w *witness) end(armed int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done = true
	if s := w.lock.State(); s != lockfx.StateReleased || w.open != 0 {
		w.faultf("in the end the lock is %v, and token %v is held", s, w.open)
	}
	if armed != 0 {
		w.faultf("in the end %d timers are armed", armed)
	}
	if !slices.Equal(w.lost, w.onLost) {
		w.faultf("lost %v, and OnLost heard %v", w.lost, w.onLost)
	}
	for token, l := range w.leases {
		known := l.lost != nil && l.lost.Reason == lockfx.ReasonHeartbeatFailed
		switch {
		case l.accepted != l.released:
			w.faultf("token %v was accepted: %v, and released: %v", token, l.accepted, l.released)
		case !known && l.gaveBack != 1:
			w.faultf("token %v was given back %d times", token, l.gaveBack)
		}
	}
}
