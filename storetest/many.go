package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/lockfx/lockfx"
)

var gatheredRenewals = []Promise{
	{
		Name: "many/answers-in-order", Text: "RenewMany answers each renewal as Renew does, in the order of the requests.", needs: hasManyRenewer,
		check: func(e *env) {
			m := e.Store.(lockfx.ManyRenewer)
			a, b := e.granted(e.Store, "a"), e.granted(e.Store, "b")
			results := m.RenewMany(e.ctx, []lockfx.Renewal{
				{Key: "a", Token: a, TTL: e.TTL},
				{Key: "b", Token: b + 1, TTL: e.TTL},
				{Key: "nobody's", Token: 1, TTL: e.TTL},
				{Key: "b", Token: b, TTL: e.TTL},
				{Key: "", Token: 1, TTL: e.TTL},
				{Key: "a", Token: a, TTL: 0},
			})
			want := []bool{true, false, false, true, false, false}
			if len(results) != len(want) {
				e.fail("%d results for %d renewals", len(results), len(want))
			}
			for i, r := range results {
				if r.OK != want[i] || (r.Err != nil) != (i >= 4) {
					e.fail("result %d: %v, %v; want %v, and an error for the last two only", i, r.OK, r.Err, want[i])
				}
			}
		},
	},
	{
		Name: "many/of-none", Text: "RenewMany of nothing answers nothing.", needs: hasManyRenewer,
		check: func(e *env) {
			if r := e.Store.(lockfx.ManyRenewer).RenewMany(e.ctx, nil); len(r) != 0 {
				e.fail("%d results for no renewal", len(r))
			}
		},
	},
	{
		Name: "many/callers-do-not-lock-each-other-out", Text: "Many who renew the same leases at once, each in another order, are all answered.", needs: hasManyRenewer,
		check: func(e *env) {
			m := e.Store.(lockfx.ManyRenewer)
			var renewals []lockfx.Renewal
			for i := range 8 {
				k := fmt.Sprint("many ", i)
				renewals = append(renewals, lockfx.Renewal{Key: k, Token: e.grantedFor(e.Store, k, e.longLease()), TTL: e.longLease()})
			}
			e.each(4, func(who int) {
				mine := slices.Clone(renewals)
				for i := range 20 {
					rand.New(rand.NewPCG(uint64(who), uint64(i))).Shuffle(len(mine), func(a, b int) { mine[a], mine[b] = mine[b], mine[a] })
					for j, r := range m.RenewMany(e.ctx, mine) {
						e.noError("renew "+mine[j].Key+" among others", r.Err)
						if !r.OK {
							e.fail("renew %q among others: false, want true", mine[j].Key)
						}
					}
				}
			})
		},
	},
}

// manyRenewals is what a ManyRenewer promises: RenewMany keeps all that Renew does.
func manyRenewals() []Promise {
	all := slices.Clone(gatheredRenewals)
	for _, p := range slices.Concat(renewal, racing, late) {
		if !strings.Contains(p.Name, "/renewal-") && !strings.HasPrefix(p.Name, "renew/") {
			continue
		}
		all = append(all, Promise{
			Name:  "many/" + strings.ReplaceAll(p.Name, "/", "-"),
			Text:  "RenewMany keeps what Renew does: " + p.Text,
			needs: func(h *Harness) bool { return hasManyRenewer(h) && (p.needs == nil || p.needs(h)) },
			check: func(e *env) {
				e.Store = gathering{e.Store}
				p.check(e)
			},
		})
	}
	return all
}

// gathering renews by RenewMany, with another renewal beside.
type gathering struct{ lockfx.Store }

func (g gathering) Renew(ctx context.Context, key string, token lockfx.Token, ttl time.Duration) (bool, error) {
	results := g.Store.(lockfx.ManyRenewer).RenewMany(ctx, []lockfx.Renewal{
		{Key: "nobody's", Token: 1, TTL: ttl}, {Key: key, Token: token, TTL: ttl},
	})
	if len(results) != 2 {
		return false, fmt.Errorf("%d results for 2 renewals", len(results))
	}
	return results[1].OK, results[1].Err
}

func hasManyRenewer(h *Harness) bool { _, ok := h.Store.(lockfx.ManyRenewer); return ok }
