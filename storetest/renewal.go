package storetest

import (
	"slices"

	"github.com/lockfx/lockfx"
)

var renewal = []Promise{
	{Name: "renew/extends-the-lease", Text: "A renewed lease outlives its first ttl.", check: func(e *env) {
		token := e.granted(e.Store, key)
		e.sleep(e.TTL / 2)
		e.renew(e.Store, key, token, 2*e.TTL+e.Late, true)
		e.sleep(e.TTL + e.Late)
		e.refused(e.Store, key)
		e.renew(e.Store, key, token, e.TTL, true)
	}},
	{Name: "renew/sets-the-time-left", Text: "A renewal sets the time left, so it can shorten a lease.", check: func(e *env) {
		token := e.grantedFor(e.Store, key, 20*e.TTL)
		e.renew(e.Store, key, token, e.TTL, true)
		e.outlive(e.TTL)
		e.granted(e.Store, key)
	}},
	{Name: "renew/does-not-add-up", Text: "Renewals do not add up: the last one decides.", check: func(e *env) {
		token := e.granted(e.Store, key)
		for range 5 {
			e.renew(e.Store, key, token, e.TTL, true)
		}
		e.outlive(e.TTL)
		e.granted(e.Store, key)
	}},
	{Name: "renew/refuses-a-foreign-token", Text: "A foreign token does not renew.", check: func(e *env) {
		token := e.granted(e.Store, key)
		for _, foreign := range foreignTo(token) {
			ok, err := e.Store.Renew(e.ctx, key, foreign, e.TTL)
			e.notTrue("renew with a foreign token", ok, err)
		}
		e.renew(e.Store, key, token, e.TTL, true)
	}},
	{Name: "renew/foreign-token-changes-nothing", Text: "A refused renewal leaves the lease as it was: neither longer nor shorter.", check: func(e *env) {
		token := e.granted(e.Store, key)
		for _, foreign := range foreignTo(token) {
			_, _ = e.Store.Renew(e.ctx, key, foreign, 20*e.TTL) // whatever it says, see what it did
		}
		e.outlive(e.TTL)
		next := e.grantedFor(e.Store, key, 20*e.TTL)
		for _, foreign := range foreignTo(next) {
			_, _ = e.Store.Renew(e.ctx, key, foreign, e.TTL)
		}
		e.outlive(e.TTL)
		e.refused(e.Store, key)
	}},
	{Name: "renew/refuses-an-expired-lease", Text: "An expired lease can't be renewed, even if no other has taken the key.", check: func(e *env) {
		token := e.granted(e.Store, key)
		e.barelyOutlive(e.TTL)
		e.renew(e.Store, key, token, e.TTL, false)
		e.granted(e.Store, key)
	}},
	{Name: "renew/refuses-after-takeover", Text: "Who lost the lease can't renew the next holder's.", check: func(e *env) {
		old := e.granted(e.Store, key)
		e.outlive(e.TTL)
		token := e.granted(e.Store, key)
		e.renew(e.Store, key, old, e.TTL, false)
		e.renew(e.Store, key, token, e.TTL, true)
	}},
	{Name: "renew/never-creates", Text: "Renewing a released or unknown key creates nothing.", check: func(e *env) {
		token := e.granted(e.Store, key)
		e.release(e.Store, key, token, true)
		e.renew(e.Store, key, token, e.TTL, false)
		e.renew(e.Store, "never seen", token, e.TTL, false)
		e.granted(e.Store, key)
		e.granted(e.Store, "never seen")
	}},
	{Name: "renew/minds-the-key", Text: "A token renews its own key only.", check: func(e *env) {
		a := e.granted(e.Store, "a")
		b := e.granted(e.Store, "b")
		if a != b {
			e.renew(e.Store, "a", b, e.TTL, false)
			e.renew(e.Store, "b", a, e.TTL, false)
		}
		e.renew(e.Store, "a", a, e.TTL, true)
		e.renew(e.Store, "b", b, e.TTL, true)
	}},
	{Name: "renew/refuses-token-zero", Text: "Token 0 renews nothing, on a free key neither.", check: func(e *env) {
		e.release(e.Store, key, e.granted(e.Store, key), true)
		for _, free := range []string{key, "never seen"} {
			ok, err := e.Store.Renew(e.ctx, free, 0, e.TTL)
			e.notTrue("renew with token 0", ok, err)
			e.granted(e.Store, free)
		}
	}},
	{Name: "renew/no-lease-ends-early", Text: "A renewed lease is kept to its end.", check: func(e *env) {
		token := e.granted(e.Store, key)
		asked := e.latest()
		e.renew(e.Store, key, token, e.TTL, true)
		e.endsNotBefore(asked.Add(e.TTL))
	}},
	{Name: "renew/keeps-the-label", Text: "A lease keeps the label of its acquisition, whatever the context of a renewal carries.", check: func(e *env) {
		g, err := e.Store.Acquire(lockfx.WithLabel(e.ctx, "host/1/first"), key, e.TTL)
		e.noError("acquire", err)
		for _, label := range []string{"", "host/2/second"} {
			ok, err := e.Store.Renew(lockfx.WithLabel(e.ctx, label), key, g.Token, e.TTL)
			e.noError("renew", err)
			if got := e.refused(e.Store, key).HeldBy; ok && got != "" && got != "host/1/first" {
				e.fail("held by %q, want %q", got, "host/1/first")
			}
			if i, inspects := e.Store.(lockfx.Inspector); inspects {
				if lease, err := i.Inspect(e.ctx, key); err == nil && lease.Token == g.Token && lease.Label != "host/1/first" {
					e.fail("inspect: label %q, want %q", lease.Label, "host/1/first")
				}
			}
		}
	}},
}

// foreignTo returns tokens that are not token, near and far.
func foreignTo(token lockfx.Token) []lockfx.Token {
	near := []lockfx.Token{token - 1, token + 1, 1, -token, 0, token ^ 1<<32, token + 1<<40}
	return slices.DeleteFunc(near, func(t lockfx.Token) bool { return t == token })
}

var release = []Promise{
	{Name: "release/frees-the-key", Text: "A released key is granted at once.", check: func(e *env) {
		token := e.grantedFor(e.Store, key, 20*e.TTL)
		e.release(e.Store, key, token, true)
		e.granted(e.Store, key)
	}},
	{Name: "release/happens-once", Text: "The second release of one lease is false.", check: func(e *env) {
		token := e.granted(e.Store, key)
		e.release(e.Store, key, token, true)
		e.release(e.Store, key, token, false)
	}},
	{Name: "release/foreign-token-frees-nothing", Text: "A foreign token frees nothing.", check: func(e *env) {
		token := e.grantedFor(e.Store, key, 20*e.TTL)
		for _, foreign := range foreignTo(token) {
			ok, err := e.Store.Release(e.ctx, key, foreign)
			e.notTrue("release with a foreign token", ok, err)
		}
		e.refused(e.Store, key)
		e.renew(e.Store, key, token, e.TTL, true)
	}},
	{Name: "release/late-release-leaves-the-next-holder", Text: "A release that comes after the expiry never touches the next holder's lease.", check: func(e *env) {
		old := e.granted(e.Store, key)
		e.outlive(e.TTL)
		token := e.grantedFor(e.Store, key, 20*e.TTL)
		e.release(e.Store, key, old, false)
		e.refused(e.Store, key)
		e.renew(e.Store, key, token, e.TTL, true)
	}},
	{Name: "release/unknown-key-is-false", Text: "Releasing a free key is false, and no error.", check: func(e *env) {
		e.release(e.Store, "never seen", 1, false)
		e.granted(e.Store, "never seen")
	}},
	{Name: "release/minds-the-key", Text: "A token releases its own key only.", check: func(e *env) {
		a := e.granted(e.Store, "a")
		b := e.granted(e.Store, "b")
		if a != b {
			e.release(e.Store, "b", a, false)
		}
		e.refused(e.Store, "b")
		e.release(e.Store, "b", b, true)
	}},
	{Name: "release/after-expiry-harms-nobody", Text: "Releasing an expired lease leaves the key free.", check: func(e *env) {
		token := e.granted(e.Store, key)
		e.outlive(e.TTL)
		_, err := e.Store.Release(e.ctx, key, token)
		e.noError("release", err)
		e.rises(token, e.granted(e.Store, key))
	}},
	{Name: "release/expired-lease-is-false", Text: "Releasing an expired lease is false: true would say that it was held to the end.", check: func(e *env) {
		token := e.granted(e.Store, key)
		e.barelyOutlive(e.TTL)
		e.release(e.Store, key, token, false)
	}},
	{Name: "release/refuses-token-zero", Text: "Token 0 releases nothing, on a free key neither.", check: func(e *env) {
		e.release(e.Store, key, e.granted(e.Store, key), true)
		for _, free := range []string{key, "never seen"} {
			ok, err := e.Store.Release(e.ctx, free, 0)
			e.notTrue("release with token 0", ok, err)
		}
	}},
}
