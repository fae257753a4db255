package storetest

import (
	"context"

	"github.com/lockfx/lockfx"
)

var outages = []Promise{
	{
		Name: "outages/acquire-is-an-error", Text: "An outage is an error, never a refusal, which would name a holder.", needs: canPartition,
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
		Name: "watch/an-outage-is-noticed", Text: "After an outage a watch wakes as before, or its channel is closed: no caller waits on a dead one.",
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
		Name: "watch/closing-is-noticed", Text: "After Close a watch wakes as before, or its channel is closed: no caller waits on a dead one.",
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
