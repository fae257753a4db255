package storetest

import (
	"errors"
	"math"
	"strings"
	"time"

	"github.com/lockfx/lockfx"
)

var keys = []Promise{
	{Name: "keys/any-utf8-works", Text: "Any non-empty UTF-8 key without NUL, up to 512 bytes, works.", check: func(e *env) {
		for _, k := range oddKeys {
			token := e.granted(e.Store, k)
			e.refused(e.Store, k)
			e.renew(e.Store, k, token, e.TTL, true)
			e.release(e.Store, k, token, true)
		}
	}},
	{Name: "keys/are-exact", Text: "Keys that look alike are different: no prefix, case, space or normal form is ignored.", check: func(e *env) {
		for _, k := range lookalikes {
			e.grantedFor(e.Store, k, 50*e.TTL)
		}
		for _, k := range lookalikes {
			e.refused(e.Store, k)
		}
	}},
	{Name: "keys/long-ones-are-exact", Text: "Long keys that differ in the last byte are different.", check: func(e *env) {
		stem := strings.Repeat("k", lockfx.MaxKeyLen-1)
		e.grantedFor(e.Store, stem+"a", 50*e.TTL)
		e.granted(e.Store, stem+"b")
		e.refused(e.Store, stem+"a")
	}},
	{Name: "keys/refuses-empty", Text: "The empty key is refused by every operation with an error that names the rule.", check: badKey("")},
	{Name: "keys/refuses-nul", Text: "A key with NUL is refused by every operation with an error that names the rule.", check: badKey("a\x00b")},
	{Name: "keys/refuses-invalid-utf8", Text: "A key that is no UTF-8 is refused by every operation with an error that names the rule.", check: badKey("a\xff")},
	{Name: "keys/refuses-513-bytes", Text: "A key of 513 bytes is refused, never cut off, with an error that names the rule.", check: badKey(strings.Repeat("k", lockfx.MaxKeyLen+1))},
}

var oddKeys = []string{
	" ", ".", "..", "/", "a/b/c", `a\b`, "-rf", "*", "?", "%", "%00", "%s%n", "{a}:b", "{}", "a:b", "a b", "'", `"`, "';--", "\n", "\t", "\x01",
	"$(id)", "${x}", "nightly", "Ünïcödé", "日本語", "🔒", "\u202e", "con", "NUL", "a\u0301", strings.Repeat("x", lockfx.MaxKeyLen), strings.Repeat("é", lockfx.MaxKeyLen/2),
}

var lookalikes = []string{
	"host-1", "host-10", "host", "Host-1", "HOST-1", "host-1 ", " host-1", "host_1", "host-1\n", "é", "e\u0301", "{host}-1", "host/1", `host\1`, "host%2f1", "\u017f", "s", "K", "\u212a",
	"straße", "strasse", "host-1.", "1", "01", "1.0",
	"costarring", "liquid", "creamwove", "quists", "plumless", "buckeroo", "Aa", "BB", // pairs with one hash: FNV-1a, FNV-1, CRC-32, Java's
}

func badKey(bad string) func(*env) {
	return func(e *env) {
		g, err := e.Store.Acquire(e.ctx, bad, e.TTL)
		e.configFault("acquire", g.OK, err)
		ok, err := e.Store.Renew(e.ctx, bad, 1, e.TTL)
		e.configFault("renew", ok, err)
		ok, err = e.Store.Release(e.ctx, bad, 1)
		e.configFault("release", ok, err)
	}
}

func (e *env) configFault(op string, ok bool, err error) {
	if ok || !errors.Is(err, lockfx.ErrConfig) {
		e.fail("%s: %v, %v; want false and an error that matches lockfx.ErrConfig", op, ok, err)
	}
}

var ttls = []Promise{
	{Name: "ttl/refuses-zero", Text: "A ttl of zero is refused: it would free the key at once, or never.", check: badTTL(func(*Harness) time.Duration { return 0 })},
	{Name: "ttl/refuses-negative", Text: "A negative ttl is refused.", check: badTTL(func(*Harness) time.Duration { return -time.Second })},
	{
		Name: "ttl/refuses-below-resolution", Text: "A ttl below the store's resolution is refused, never rounded to zero.",
		needs: func(h *Harness) bool { return h.Resolution > 1 },
		check: badTTL(func(h *Harness) time.Duration { return h.Resolution - 1 }),
	},
	{Name: "ttl/takes-its-resolution", Text: "The smallest ttl that is taken is granted, and expires.", check: func(e *env) {
		smallest := max(e.Resolution, 1)
		e.grantedFor(e.Store, key, smallest)
		e.outlive(smallest)
		e.granted(e.Store, key)
	}},
	{Name: "ttl/long-leases-stay", Text: "A lease of a day is kept, and its time left is reported correctly.", check: func(e *env) {
		token := e.grantedFor(e.Store, key, 24*time.Hour)
		e.outlive(e.TTL)
		g := e.refused(e.Store, key)
		if g.RetryAfter != 0 && (g.RetryAfter < 23*time.Hour || g.RetryAfter > 25*time.Hour) {
			e.fail("retry after %v on a lease of a day", g.RetryAfter)
		}
		e.release(e.Store, key, token, true)
	}},
	{Name: "ttl/the-longest-lease-is-kept-or-refused", Text: "A lease longer than the engine can count is refused with an error that names the rule, or kept: it is not over at once.", check: func(e *env) {
		for _, ttl := range []time.Duration{math.MaxInt64, math.MaxInt64 / 2} {
			g, err := e.Store.Acquire(e.ctx, key, ttl)
			if err != nil {
				e.configFault("acquire", g.OK, err)
				continue
			}
			if !g.OK {
				e.fail("acquire for %v: refused, want a grant", ttl)
			}
			for range 2 { // the second time with a renewed lease
				if left := e.refused(e.Store, key).RetryAfter; left < 0 || left > 0 && left < ttl/2 {
					e.fail("retry after %v on a lease of %v", left, ttl)
				}
				e.renew(e.Store, key, g.Token, ttl, true)
			}
			e.release(e.Store, key, g.Token, true)
		}
	}},
	{Name: "ttl/odd-fractions-are-no-less", Text: "A ttl that the engine has to round is rounded up, so that no other takes the lease early.", check: func(e *env) {
		ttl := e.TTL + e.TTL/3 + 1
		e.grantedFor(e.Store, key, ttl)
		e.sleep(ttl - e.TTL/6)
		e.refused(e.Store, key)
	}},
}

func badTTL(ttl func(*Harness) time.Duration) func(*env) {
	return func(e *env) {
		bad := ttl(e.Harness)
		g, err := e.Store.Acquire(e.ctx, key, bad)
		e.configFault("acquire", g.OK, err)
		token := e.granted(e.Store, key)
		ok, err := e.Store.Renew(e.ctx, key, token, bad)
		e.configFault("renew", ok, err)
		e.refused(e.Store, key)
		e.release(e.Store, key, token, true)
	}
}
