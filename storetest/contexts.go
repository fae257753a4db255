package storetest

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
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
		Name: "contexts/lost-reply-leaves-nothing", Text: "A request whose reply is lost leaves no lease behind: its caller undoes it by its tag.",
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
	{Name: "contexts/a-lease-outlives-its-call", Text: "The contexts of Acquire and Renew bound the calls, not the lease.", check: func(e *env) {
		ctx, cancel := context.WithCancel(e.ctx)
		g, err := e.Store.Acquire(ctx, key, 20*e.TTL)
		cancel()
		e.noError("acquire", err)
		e.sleep(e.TTL / 4) // a lease that is bound to the context has gone by then
		e.refused(e.Store, key)
		ctx, cancel = context.WithCancel(e.ctx)
		ok, err := e.Store.Renew(ctx, key, g.Token, 20*e.TTL)
		cancel()
		e.noError("renew", err)
		e.sleep(e.TTL / 4)
		e.refused(e.Store, key)
		e.renew(e.Store, key, g.Token, e.TTL, ok)
	}},
	{
		Name: "contexts/a-call-ends-with-its-context", Text: "A call whose context ends on the way returns, with an error that matches the context's.",
		needs: canLoseReplies,
		check: func(e *env) {
			e.warmUp()
			token := e.grantedFor(e.Store, key, e.longLease())
			heal, err := e.LoseReplies()
			e.noError("lose replies", err)
			defer heal()
			for _, c := range []struct {
				op   string
				call func(context.Context) (bool, error)
			}{
				{"acquire", func(ctx context.Context) (bool, error) {
					g, err := e.Store.Acquire(ctx, "another key", e.TTL)
					return g.OK, err
				}},
				{"renew", func(ctx context.Context) (bool, error) { return e.Store.Renew(ctx, key, token, e.TTL) }},
				{"release", func(ctx context.Context) (bool, error) { return e.Store.Release(ctx, key, token) }},
			} {
				o := e.timed(e.TTL/4, c.call)
				switch {
				case !o.returned:
					e.fail("%s without an answer: it goes on %v after its context has ended", c.op, o.took-e.TTL/4)
				case o.ok || !errors.Is(o.err, context.DeadlineExceeded):
					e.fail("%s without an answer: %v, %v; want false, %v", c.op, o.ok, o.err, context.DeadlineExceeded)
				}
			}
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
