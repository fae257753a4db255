package storetest

import "github.com/lockfx/lockfx"

var handles = []Promise{
	{
		Name: "handles/exclude-each-other", Text: "A lease taken through one handle is refused through another.",
		needs: func(h *Harness) bool { return h.Second != nil },
		check: func(e *env) {
			other := e.open(e.Second)
			token := e.granted(e.Store, key)
			e.refused(other, key)
			e.release(e.Store, key, token, true)
			e.granted(other, key)
			e.refused(e.Store, key)
		},
	},
	{
		Name: "handles/the-token-is-the-owner", Text: "Who has the token can renew and release through any handle.",
		needs: func(h *Harness) bool { return h.Second != nil },
		check: func(e *env) {
			other := e.open(e.Second)
			token := e.granted(e.Store, key)
			e.renew(other, key, token, e.TTL, true)
			e.release(other, key, token, true)
			e.granted(e.Store, key)
		},
	},
	{
		Name: "handles/one-winner", Text: "Of many who ask at once through two handles exactly one is granted.",
		needs: func(h *Harness) bool { return h.Second != nil },
		check: func(e *env) {
			both := []lockfx.Store{e.Store, e.open(e.Second)}
			for range 20 {
				won := make(chan lockfx.Token, 8)
				e.each(8, func(i int) {
					if g := e.acquire(both[i%2], key); g.OK {
						won <- g.Token
					}
				})
				if len(won) != 1 {
					e.fail("%d winners, want 1", len(won))
				}
				e.release(e.Store, key, <-won, true)
			}
		},
	},
	{
		Name: "handles/a-crashed-holder-frees-the-key", Text: "The lease of a process that was killed expires, and the next token is greater.",
		needs: func(h *Harness) bool { return h.Crash != nil },
		check: func(e *env) {
			token, err := e.Crash(e.ctx, key, e.TTL)
			e.noError("crash", err)
			e.outlive(e.TTL)
			e.rises(token, e.granted(e.Store, key))
		},
	},
	{
		Name: "handles/a-crashed-holder-keeps-its-ttl", Text: "The lease of a process that was killed is not taken before its ttl is over.",
		needs: func(h *Harness) bool { return h.Crash != nil },
		check: func(e *env) {
			_, err := e.Crash(e.ctx, key, 20*e.TTL)
			e.noError("crash", err)
			e.refused(e.Store, key)
		},
	},
	{
		Name: "handles/closing-leaves-leases-alone", Text: "Close ends what the store opened for itself; a lease that is held stays, and the store can be used again.",
		needs: isCloser,
		check: func(e *env) {
			token := e.granted(e.Store, key)
			e.noError("close", e.Store.(lockfx.Closer).Close(e.ctx))
			e.renew(e.Store, key, token, e.TTL, true)
			e.refused(e.Store, key)
			e.release(e.Store, key, token, true)
			e.noError("close again", e.Store.(lockfx.Closer).Close(e.ctx))
		},
	},
}

func isCloser(h *Harness) bool { _, ok := h.Store.(lockfx.Closer); return ok }
