package storetest

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/lockfx/lockfx"
)

var contexts = []Promise{
	{Name: "contexts/dead-before-acquire", Text: "With a dead context nothing is acquired, and the error matches the context's.", check: func(e *env) {
		for _, dead := range e.deadContexts() {
			g, err := e.Store.Acquire(dead, key, 20*e.TTL)
			if g.OK || err == nil || !errors.Is(err, dead.Err()) {
				e.fail("acquire with a dead context: %+v, %v; want no grant and %v", g, err, dead.Err())
			}
		}
		e.granted(e.Store, key)
	}},
	{Name: "contexts/dead-before-renew", Text: "With a dead context a renewal is an error and changes nothing.", check: func(e *env) {
		token := e.granted(e.Store, key)
		for _, dead := range e.deadContexts() {
			if ok, err := e.Store.Renew(dead, key, token, 20*e.TTL); ok || !errors.Is(err, dead.Err()) {
				e.fail("renew with a dead context: %v, %v; want false, %v", ok, err, dead.Err())
			}
		}
		e.outlive(e.TTL)
		e.granted(e.Store, key)
	}},
	{Name: "contexts/dead-before-release", Text: "With a dead context a release is an error and frees nothing.", check: func(e *env) {
		token := e.grantedFor(e.Store, key, 20*e.TTL)
		for _, dead := range e.deadContexts() {
			if ok, err := e.Store.Release(dead, key, token); ok || !errors.Is(err, dead.Err()) {
				e.fail("release with a dead context: %v, %v; want false, %v", ok, err, dead.Err())
			}
		}
		e.refused(e.Store, key)
	}},
	{Name: "contexts/cancelled-during-acquire-leaves-nothing", Text: "A call whose context ends on the way leaves no lease behind, though its lease would be long.", check: func(e *env) {
		for range 40 {
			ctx, cancel := context.WithCancel(e.ctx)
			timer := time.AfterFunc(rand.N(2*time.Millisecond), cancel)
			g, err := e.Store.Acquire(ctx, key, 50*e.TTL)
			timer.Stop()
			cancel()
			switch {
			case err == nil && !g.OK:
				e.fail("refused: an earlier call whose context had ended left a lease behind")
			case err == nil:
				e.release(e.Store, key, g.Token, true)
			case g.OK:
				e.fail("a grant and an error: %v", err)
			}
			token := e.freeWithin(e.Store, e.TTL)
			e.release(e.Store, key, token, true)
		}
	}},
	{
		Name: "contexts/lost-reply-leaves-nothing", Text: "A request whose reply is lost leaves no lease behind: its caller undoes it by a tag of its own.",
		needs: func(h *Harness) bool { return h.LoseReplies != nil },
		check: func(e *env) {
			heal, err := e.LoseReplies()
			e.noError("lose replies", err)
			ctx, cancel := context.WithTimeout(e.ctx, e.TTL/2)
			g, err := e.Store.Acquire(ctx, key, 50*e.TTL)
			cancel()
			heal()
			if g.OK || err == nil {
				e.fail("acquire without a reply: %+v, %v; want an error", g, err)
			}
			e.freeWithin(e.Store, 5*e.TTL)
		},
	},
}

// deadContexts returns contexts that have ended in either way.
func (e *env) deadContexts() []context.Context {
	cancelled, cancel := context.WithCancel(e.ctx)
	cancel()
	late, cancel := context.WithDeadline(e.ctx, time.Now().Add(-time.Second))
	cancel()
	return []context.Context{cancelled, late}
}

var outages = []Promise{
	{
		Name: "outages/acquire-is-an-error", Text: "An outage is an error, never a refusal: nobody holds the key.", needs: canPartition,
		check: func(e *env) {
			e.cutOff(func(ctx context.Context) {
				if g, err := e.Store.Acquire(ctx, key, e.TTL); err == nil || g.OK {
					e.fail("acquire in an outage: %+v, %v; want an error", g, err)
				}
			})
			e.freeWithin(e.Store, 2*e.TTL+e.Late)
		},
	},
	{
		Name: "outages/renew-is-an-error", Text: "A renewal in an outage is an error, never a plain false: the lease may still be ours.", needs: canPartition,
		check: func(e *env) {
			token := e.grantedFor(e.Store, key, 50*e.TTL)
			e.cutOff(func(ctx context.Context) {
				if ok, err := e.Store.Renew(ctx, key, token, 50*e.TTL); err == nil || ok {
					e.fail("renew in an outage: %v, %v; want an error", ok, err)
				}
			})
			e.renew(e.Store, key, token, e.TTL, true)
		},
	},
	{
		Name: "outages/release-is-an-error", Text: "A release in an outage is an error.", needs: canPartition,
		check: func(e *env) {
			token := e.granted(e.Store, key)
			e.cutOff(func(ctx context.Context) {
				if ok, err := e.Store.Release(ctx, key, token); err == nil || ok {
					e.fail("release in an outage: %v, %v; want an error", ok, err)
				}
			})
			e.freeWithin(e.Store, 3*e.TTL+e.Late)
		},
	},
	{
		Name: "outages/held-key-is-refused-afterwards", Text: "A lease that outlives an outage is still refused to others.", needs: canPartition,
		check: func(e *env) {
			e.grantedFor(e.Store, key, 50*e.TTL)
			e.cutOff(func(ctx context.Context) { _, _ = e.Store.Acquire(ctx, key, e.TTL) })
			e.refused(e.Store, key)
		},
	},
	{Name: "outages/contention-is-no-error", Text: "However many ask at once, contention is no error.", check: func(e *env) {
		e.grantedFor(e.Store, key, 20*e.TTL)
		e.each(16, func(int) {
			for range 10 {
				e.refused(e.Store, key)
			}
		})
	}},
}

func canPartition(h *Harness) bool { return h.Partition != nil }

// cutOff runs f while the store is cut off its engine, with a context that ends
// soon enough for the case.
func (e *env) cutOff(f func(context.Context)) {
	heal, err := e.Partition()
	e.noError("partition", err)
	defer heal()
	ctx, cancel := context.WithTimeout(e.ctx, e.TTL)
	defer cancel()
	f(ctx)
}

var clocks = []Promise{
	{
		Name: "clocks/client-ahead-changes-nothing", Text: "The clock of a client that is an hour ahead changes nothing.", needs: canSkew,
		check: func(e *env) { e.skewed(time.Hour) },
	},
	{
		Name: "clocks/client-behind-changes-nothing", Text: "The clock of a client that is an hour behind changes nothing.", needs: canSkew,
		check: func(e *env) { e.skewed(-time.Hour) },
	},
}

func canSkew(h *Harness) bool { return h.SkewClientClock != nil }

// skewed checks exclusion, expiry and tokens between a client whose clock is off
// and one whose clock is right.
func (e *env) skewed(d time.Duration) {
	off, err := e.SkewClientClock(d)
	e.noError("skew", err)
	for _, pair := range [][2]lockfx.Store{{off, e.Store}, {e.Store, off}} {
		first := e.granted(pair[0], key)
		e.refused(pair[1], key)
		e.sleep(e.TTL / 2)
		e.refused(pair[1], key)
		e.renew(pair[0], key, first, e.TTL, true)
		e.outlive(e.TTL)
		second := e.granted(pair[1], key)
		e.rises(first, second)
		e.release(pair[1], key, second, true)
		third := e.granted(pair[0], key)
		e.rises(second, third)
		e.release(pair[0], key, third, true)
	}
}
