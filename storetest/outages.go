package storetest

import "context"

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
