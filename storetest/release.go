package storetest

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
	{Name: "release/unknown-key-is-false", Text: "Releasing a key that nobody holds is false, and no error.", check: func(e *env) {
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
	{Name: "release/after-expiry-harms-nobody", Text: "Releasing an expired lease that nobody has taken leaves the key free.", check: func(e *env) {
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
