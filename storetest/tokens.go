package storetest

import (
	"sync"

	"github.com/lockfx/lockfx"
)

var tokens = []Promise{
	{Name: "tokens/rise-across-release", Text: "Tokens rise across release.", check: func(e *env) {
		var last lockfx.Token
		for range 200 {
			token := e.granted(e.Store, key)
			e.rises(last, token)
			e.release(e.Store, key, token, true)
			last = token
		}
	}},
	{Name: "tokens/rise-across-expiry", Text: "Tokens rise when an expired lease is taken.", check: func(e *env) {
		first := e.granted(e.Store, key)
		e.outlive(e.TTL)
		e.rises(first, e.granted(e.Store, key))
	}},
	{Name: "tokens/stay-across-renewal", Text: "A renewal keeps the token.", check: func(e *env) {
		token := e.granted(e.Store, key)
		e.renew(e.Store, key, token, e.TTL, true)
		e.renew(e.Store, key, token, e.TTL, true)
		e.release(e.Store, key, token, true)
	}},
	{Name: "tokens/rise-under-contention", Text: "Tokens rise in the order of the holds, across all holders.", check: func(e *env) {
		var mu sync.Mutex
		var seen []lockfx.Token
		e.each(8, func(int) {
			for range 25 {
				g := e.acquire(e.Store, key)
				if !g.OK {
					continue
				}
				mu.Lock()
				seen = append(seen, g.Token)
				mu.Unlock()
				e.release(e.Store, key, g.Token, true)
			}
		})
		for i := 1; i < len(seen); i++ {
			e.rises(seen[i-1], seen[i])
		}
	}},
	{
		Name: "tokens/rise-across-handles", Text: "Tokens rise across handles on the same data.",
		needs: func(h *Harness) bool { return h.Second != nil },
		check: func(e *env) {
			other := e.open(e.Second)
			var last lockfx.Token
			for range 20 {
				for _, s := range []lockfx.Store{e.Store, other} {
					token := e.granted(s, key)
					e.rises(last, token)
					e.release(s, key, token, true)
					last = token
				}
			}
		},
	},
	{
		Name: "tokens/rise-across-restart", Text: "Tokens rise across a restart of the engine.",
		needs: func(h *Harness) bool { return h.Restart != nil },
		check: func(e *env) {
			token := e.granted(e.Store, key)
			e.release(e.Store, key, token, true)
			s := e.open(e.Restart)
			e.rises(token, e.granted(s, key))
		},
	},
	{
		Name: "tokens/rise-across-loss-of-data", Text: "Tokens rise even when the engine has lost its data.",
		needs: func(h *Harness) bool { return h.LoseData != nil },
		check: func(e *env) {
			var last lockfx.Token
			for range 50 {
				last = e.granted(e.Store, key)
				e.release(e.Store, key, last, true)
			}
			s := e.open(e.LoseData)
			e.rises(last, e.granted(s, key))
		},
	},
	{
		Name: "tokens/rise-while-a-lease-is-lost-with-the-data", Text: "The token after a loss of data exceeds that of a lease which was held then.",
		needs: func(h *Harness) bool { return h.LoseData != nil },
		check: func(e *env) {
			held := e.granted(e.Store, key)
			s := e.open(e.LoseData)
			e.rises(held, e.freeWithin(s, e.TTL+e.Late))
		},
	},
}
