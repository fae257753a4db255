package storetest

import (
	"context"

	"github.com/lockfx/lockfx"
)

// enduring is about a watch in the course of time.
var enduring = []Promise{
	{Name: "watch/is-quiet", Text: "While nothing happens to a held key a watch is still: each signal costs its waiters an acquisition.", needs: isWatcher, check: func(e *env) {
		e.grantedFor(e.Store, key, e.longLease())
		freed, stop := e.watch(key)
		defer stop()
		const looks = 20
		signals := 0
		for range looks {
			e.sleep(e.TTL / looks)
			if e.signalled(freed, 0) {
				signals++
			}
		}
		if signals > looks/4 {
			e.fail("signals at %d of %d looks", signals, looks)
		}
	}},
	{Name: "watch/shorter-lease-wakes", Text: "Who waits for a lease that a renewal cuts short is woken, when it ends at the latest.", needs: isWatcher, check: func(e *env) {
		token := e.grantedFor(e.Store, key, e.longLease())
		freed, stop := e.watch(key)
		defer stop()
		e.renew(e.Store, key, token, e.TTL, true)
		e.outlive(e.TTL)
		e.wakes(freed, "the end of a lease that was cut short")
	}},
	{
		Name: "watch/an-outage-is-noticed", Text: "After an outage a watch wakes as before, or its channel is closed: nobody waits on a dead one.",
		needs: func(h *Harness) bool { return isWatcher(h) && canPartition(h) },
		check: func(e *env) {
			token := e.grantedFor(e.Store, key, e.longLease())
			freed, stop := e.watch(key)
			defer stop()
			e.cutOff(func(ctx context.Context) {
				_, _ = e.Store.Acquire(ctx, key, e.TTL)
				e.sleep(e.TTL / 4)
			})
			e.release(e.Store, key, token, true)
			e.wakesOrCloses(freed, "an outage and a release")
		},
	},
	{
		Name: "watch/closing-is-noticed", Text: "After Close a watch wakes as before, or its channel is closed: nobody waits on a dead one.",
		needs: func(h *Harness) bool { return isWatcher(h) && isCloser(h) },
		check: func(e *env) {
			token := e.grantedFor(e.Store, key, e.longLease())
			freed, stop := e.watch(key)
			defer stop()
			e.noError("close", e.Store.(lockfx.Closer).Close(e.ctx))
			e.release(e.Store, key, token, true)
			e.wakesOrCloses(freed, "Close and a release")
		},
	},
}

func (e *env) wakesOrCloses(freed <-chan struct{}, what string) {
	if signal, _ := e.noticed(freed, e.patience()); !signal {
		e.fail("no signal after %s, and the channel is open", what)
	}
}
