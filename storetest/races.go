package storetest

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/lockfx/lockfx"
)

// racing finds what looks first and writes afterwards, by what comes in between.
var racing = []Promise{
	{Name: "races/renewal-leaves-the-next-holder", Text: "A renewal that races a release and the next acquisition neither prolongs nor takes the next lease.", check: func(e *env) {
		e.handedOver(func(token lockfx.Token) {
			_, err := e.Store.Renew(e.ctx, key, token, e.longLease())
			e.noError("renew", err)
		})
	}},
	{Name: "races/release-leaves-the-next-holder", Text: "A release that races another one and the next acquisition frees nothing of the next lease.", check: func(e *env) {
		e.handedOver(func(token lockfx.Token) {
			_, err := e.Store.Release(e.ctx, key, token)
			e.noError("release", err)
		})
	}},
	{Name: "races/renewals-at-once-are-true", Text: "Of many renewals of one lease at once none is refused: false would say that the lease is lost.", check: func(e *env) {
		token := e.grantedFor(e.Store, key, e.longLease())
		e.each(8, func(int) {
			for range 50 {
				e.renew(e.Store, key, token, e.longLease(), true)
			}
		})
	}},
	{Name: "races/one-release-is-true", Text: "Of many releases of one lease at once exactly one is true.", check: func(e *env) {
		for range e.races(1000) / 3 {
			token := e.grantedFor(e.Store, key, e.longLease())
			var freed atomic.Int64
			e.each(4, func(int) {
				ok, err := e.Store.Release(e.ctx, key, token)
				e.noError("release", err)
				if ok {
					freed.Add(1)
				}
			})
			if n := freed.Load(); n != 1 {
				e.fail("%d of 4 releases at once are true, want 1", n)
			}
		}
	}},
}

// handedOver passes a lease on, again and again, while others do something with the token
// of its first holder. The next lease must be there, and as long as it was asked for.
func (e *env) handedOver(meddle func(token lockfx.Token)) {
	var first atomic.Int64
	var over atomic.Bool
	e.each(5, func(who int) {
		if who > 0 {
			for i := 1; !over.Load(); i++ {
				if token := lockfx.Token(first.Load()); token.Valid() {
					meddle(token)
				}
				e.breathe(i)
			}
			return
		}
		defer over.Store(true)
		began := time.Now()
		for i := 0; e.Wrap != nil && i < 2000 || e.Wrap == nil && time.Since(began) < 200*time.Millisecond; i++ {
			token := e.grantedFor(e.Store, key, e.longLease())
			first.Store(int64(token))
			e.breathe(i)
			_, err := e.Store.Release(e.ctx, key, token)
			e.noError("release", err)
			next := e.granted(e.Store, key)
			e.breathe(i)
			if left := e.refused(e.Store, key).RetryAfter; left > e.TTL+e.Late {
				e.fail("retry after %v on a lease of %v: a renewal of the one before has prolonged it", left, e.TTL)
			}
			e.release(e.Store, key, next, true)
		}
	})
}

// breathe lets others go on, and at times the time of a bubble, which waits for all.
func (e *env) breathe(i int) {
	if e.Wrap != nil && i%10 == 0 {
		e.sleep(time.Microsecond)
	}
	runtime.Gosched()
}
