package storetest

import (
	"context"
	"sync"
	"time"

	"github.com/lockfx/lockfx"
)

// hold keeps back the next request of the store. What it returns may be called twice.
func (e *env) hold() (deliver func()) {
	deliver, err := e.Hold()
	e.noError("hold", err)
	return sync.OnceFunc(deliver)
}

// warmUp lets the store connect to where the key lies, and teach its engine what it needs.
func (e *env) warmUp() {
	token := e.granted(e.Store, key)
	e.renew(e.Store, key, token, e.TTL, true)
	e.release(e.Store, key, token, true)
}

// notRefused breaks the promise on a plain false: whoever does not know must say so.
func (e *env) notRefused(op string, ok bool, err error) {
	if err == nil && !ok {
		e.fail("%s of a request whose answer is outstanding: false, want true or an error", op)
	}
}

// untilRepeated is long enough for a client that repeats a request without an answer by
// itself: go-redis does after 3 s.
func (e *env) untilRepeated() time.Duration { return max(2*e.TTL, 4*time.Second) }

// lateAcquire lets an acquisition arrive late whose caller has patience for so long.
func (e *env) lateAcquire(patience time.Duration) {
	e.warmUp()
	deliver := e.hold()
	defer deliver()
	g, err := e.within(patience).Acquire(e.ctx, key, e.longLease())
	switch {
	case err == nil && !g.OK:
		e.fail("acquire %q, which is free: refused (held by %q), want a grant or an error", key, g.HeldBy)
	case err == nil:
		e.release(e.Store, key, g.Token, true)
	}
	e.release(e.Store, key, e.freeWithin(e.Store, e.TTL), true)
	deliver()
	e.granted(e.Store, key)
}

// lateRenewal has a renewal kept back whose lease is then released.
func (e *env) lateRenewal(then func(deliver func())) {
	e.warmUp()
	token := e.grantedFor(e.Store, key, e.longLease())
	deliver := e.hold()
	defer deliver()
	ok, err := e.within(e.TTL/10).Renew(e.ctx, key, token, e.longLease())
	e.notRefused("renew", ok, err)
	e.release(e.Store, key, token, true)
	then(deliver)
}

// undisturbed delivers a late request, which must leave the lease of token alone.
func (e *env) undisturbed(token lockfx.Token, deliver func()) {
	deliver()
	e.refused(e.Store, key)
	e.renew(e.Store, key, token, e.TTL, true)
	e.release(e.Store, key, token, true)
	e.granted(e.Store, key)
}

// answerLost makes a call whose answer is lost, and whose repetition is held up until
// another holder has come and gone.
func (e *env) answerLost(call func(lockfx.Store)) {
	heal, err := e.LoseReplies()
	e.noError("lose replies", err)
	e.each(2, func(who int) {
		if who == 0 {
			call(e.within(e.untilRepeated()))
			return
		}
		e.sleep(e.TTL / 4) // by now the request has arrived
		if canHold(e.Harness) {
			defer e.hold()()
		}
		heal()
		e.sleep(e.TTL / 4) // and the repetition is on its way
		others := e.within(e.TTL)
		if g, err := others.Acquire(e.ctx, key, e.TTL); err == nil && g.OK {
			_, _ = others.Release(e.ctx, key, g.Token)
		}
	})
}

// within is the store for callers who give up after d.
func (e *env) within(d time.Duration) lockfx.Store { return bounded{e.Store, d} }

type bounded struct {
	lockfx.Store
	d time.Duration
}

func (b bounded) Acquire(ctx context.Context, key string, ttl time.Duration) (lockfx.Grant, error) {
	ctx, cancel := context.WithTimeout(ctx, b.d)
	defer cancel()
	return b.Store.Acquire(ctx, key, ttl)
}

func (b bounded) Renew(ctx context.Context, key string, token lockfx.Token, ttl time.Duration) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, b.d)
	defer cancel()
	return b.Store.Renew(ctx, key, token, ttl)
}

func (b bounded) Release(ctx context.Context, key string, token lockfx.Token) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, b.d)
	defer cancel()
	return b.Store.Release(ctx, key, token)
}
