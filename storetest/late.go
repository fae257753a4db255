package storetest

import (
	"context"

	"github.com/lockfx/lockfx"
)

func canHold(h *Harness) bool { return h.Hold != nil }

func canLoseReplies(h *Harness) bool { return h.LoseReplies != nil }

// late is about requests that arrive after their caller has given up or their client
// has sent them again, and about answers that are lost on the way.
var late = []Promise{
	{
		Name: "late/given-up-acquire-is-granted-to-nobody", Text: "An acquisition that arrives after its caller gave up takes no lease.", needs: canHold,
		check: func(e *env) { e.lateAcquire(e.TTL / 10) },
	},
	{
		Name: "late/repeated-acquire-is-granted-once", Text: "An acquisition that was sent again, granted and released takes no second lease when the first request arrives.", needs: canHold,
		check: func(e *env) { e.lateAcquire(e.untilRepeated()) },
	},
	{
		Name: "late/refused-acquire-is-granted-to-nobody", Text: "An acquisition that was sent again and refused takes no lease when the first request arrives.", needs: canHold,
		check: func(e *env) {
			e.warmUp()
			held := e.grantedFor(e.Store, key, e.longLease())
			deliver := e.hold()
			defer deliver()
			if g, err := e.within(e.untilRepeated()).Acquire(e.ctx, key, e.longLease()); g.OK || g.Token != 0 {
				e.fail("acquire %q while it is held: %+v, %v", key, g, err)
			}
			e.release(e.Store, key, held, true)
			deliver()
			e.granted(e.Store, key)
		},
	},
	{
		Name: "late/renewal-cuts-no-later-one", Text: "A renewal that arrives after a later one does not cut short what the later one gave.", needs: canHold,
		check: func(e *env) {
			e.warmUp()
			token := e.grantedFor(e.Store, key, e.longLease())
			deliver := e.hold()
			defer deliver()
			ok, err := e.within(e.TTL/10).Renew(e.ctx, key, token, e.TTL)
			e.notRefused("renew", ok, err)
			e.renew(e.Store, key, token, e.longLease(), true)
			deliver()
			e.outlive(e.TTL)
			e.refused(e.Store, key)
			e.renew(e.Store, key, token, e.TTL, true)
		},
	},
	{
		Name: "late/renewal-leaves-the-next-holder", Text: "A renewal that arrives late does not prolong the next holder's lease.", needs: canHold,
		check: func(e *env) {
			e.lateRenewal(func(deliver func()) {
				e.granted(e.Store, key)
				deliver()
				e.outlive(e.TTL)
				e.granted(e.Store, key)
			})
		},
	},
	{
		Name: "late/renewal-revives-nothing", Text: "A renewal that arrives after the release creates no lease.", needs: canHold,
		check: func(e *env) {
			e.lateRenewal(func(deliver func()) {
				deliver()
				e.granted(e.Store, key)
			})
		},
	},
	{
		Name: "late/release-leaves-the-next-holder", Text: "A release that arrives late frees nothing of the next holder's.", needs: canHold,
		check: func(e *env) {
			e.warmUp()
			token := e.grantedFor(e.Store, key, e.longLease())
			deliver := e.hold()
			defer deliver()
			ok, err := e.within(e.TTL/10).Release(e.ctx, key, token)
			e.notRefused("release", ok, err)
			_, err = e.Store.Release(e.ctx, key, token) // true, or the store has meanwhile done it by itself
			e.noError("release again", err)
			e.undisturbed(e.grantedFor(e.Store, key, e.longLease()), deliver)
		},
	},
	{
		Name: "late/break-leaves-the-next-holder", Text: "A break that arrives late frees nothing of a lease that was taken after it was asked for.",
		needs: func(h *Harness) bool { return canHold(h) && isBreaker(h) },
		check: func(e *env) {
			e.warmUp()
			e.grantedFor(e.Store, key, e.longLease())
			e.breaks(true)
			token := e.grantedFor(e.Store, key, e.longLease())
			deliver := e.hold()
			defer deliver()
			ctx, cancel := context.WithTimeout(e.ctx, e.TTL/10)
			defer cancel()
			_, _ = e.Store.(lockfx.Breaker).Break(ctx, key)
			_, err := e.Store.Release(e.ctx, key, token) // unless the break was repeated
			e.noError("release", err)
			e.undisturbed(e.grantedFor(e.Store, key, e.longLease()), deliver)
		},
	},
	{
		Name: "late/undo-leaves-the-next-lease", Text: "When the undo of a request whose answer was lost arrives late, it frees nothing of a later lease.",
		needs: func(h *Harness) bool { return canHold(h) && canLoseReplies(h) },
		check: func(e *env) {
			e.warmUp()
			heal, err := e.LoseReplies()
			e.noError("lose replies", err)
			defer heal()
			ctx, cancel := context.WithCancel(e.ctx)
			defer cancel()
			deliver := func() {}
			defer func() { deliver() }()
			e.each(2, func(who int) {
				if who == 0 {
					_, _ = e.Store.Acquire(ctx, key, 2*e.TTL)
					return
				}
				e.sleep(e.TTL / 4) // by now the request has arrived
				deliver = e.hold()
				cancel()
			})
			heal()
			token := e.freeWithin(e.Store, 3*e.TTL+e.Late) // the undo is on its way: that lease ends by itself
			e.renew(e.Store, key, token, e.longLease(), true)
			e.undisturbed(token, deliver)
		},
	},
	{
		Name: "late/repeated-acquire-meets-no-lease-of-its-own", Text: "An acquisition whose answer is lost, and that is sent again, is not refused because of itself.", needs: canLoseReplies,
		check: func(e *env) {
			e.warmUp()
			e.answerLost(func(s lockfx.Store) {
				if g, err := s.Acquire(e.ctx, key, e.longLease()); err == nil && !g.OK {
					e.fail("acquire %q, which is free: refused (held by %q), want a grant or an error", key, g.HeldBy)
				}
			})
		},
	},
	{
		Name: "late/repeated-release-is-no-loss", Text: "A release whose answer is lost, and that is sent again after the next hold, is true or an error: false would say that the lease was lost.", needs: canLoseReplies,
		check: func(e *env) {
			e.warmUp()
			token := e.grantedFor(e.Store, key, e.longLease())
			e.answerLost(func(s lockfx.Store) {
				ok, err := s.Release(e.ctx, key, token)
				e.notRefused("release", ok, err)
			})
		},
	},
}
