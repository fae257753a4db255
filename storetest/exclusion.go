package storetest

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/lockfx/lockfx"
)

var exclusion = []Promise{
	{Name: "exclusion/grants-a-free-key", Text: "A free key is granted at the first call.", check: func(e *env) {
		e.granted(e.Store, key)
	}},
	{Name: "exclusion/refuses-a-held-key", Text: "A held key is refused without an error: contention is no outage.", check: func(e *env) {
		e.granted(e.Store, key)
		e.refused(e.Store, key)
	}},
	{Name: "exclusion/refusal-carries-no-token", Text: "A refusal carries no token, so that it can't be taken for a grant.", check: func(e *env) {
		e.granted(e.Store, key)
		if g := e.refused(e.Store, key); g.Token != 0 {
			e.fail("refused with token %d, want 0", g.Token)
		}
	}},
	{Name: "exclusion/every-acquisition-is-its-own-owner", Text: "The same caller with the same label is refused like anybody else: the token is the owner, not a name.", check: func(e *env) {
		ctx := lockfx.WithLabel(e.ctx, "host-1")
		first, err := e.Store.Acquire(ctx, key, e.TTL)
		e.noError("acquire", err)
		second, err := e.Store.Acquire(ctx, key, e.TTL)
		e.noError("acquire", err)
		if !first.OK || second.OK {
			e.fail("granted %v, then %v; want true, then false", first.OK, second.OK)
		}
	}},
	{Name: "exclusion/keys-are-independent", Text: "A lease on one key leaves other keys free.", check: func(e *env) {
		a := e.granted(e.Store, "a")
		b := e.granted(e.Store, "b")
		e.release(e.Store, "a", a, true)
		e.refused(e.Store, "b")
		e.release(e.Store, "b", b, true)
	}},
	{Name: "exclusion/one-winner", Text: "Of many concurrent callers exactly one is granted, and none gets an error.", check: func(e *env) {
		for range 20 {
			var winners atomic.Int64
			var token atomic.Int64
			e.each(8, func(int) {
				if g := e.acquire(e.Store, key); g.OK {
					winners.Add(1)
					token.Store(int64(g.Token))
				}
			})
			if n := winners.Load(); n != 1 {
				e.fail("%d winners, want 1", n)
			}
			e.release(e.Store, key, lockfx.Token(token.Load()), true)
		}
	}},
	{Name: "exclusion/never-two-at-once", Text: "Under contention no two holders overlap.", check: func(e *env) {
		var inside, overlaps, holds atomic.Int64
		e.each(8, func(int) {
			for range 50 {
				g := e.acquire(e.Store, key)
				if !g.OK {
					continue
				}
				if inside.Add(1) > 1 {
					overlaps.Add(1)
				}
				holds.Add(1)
				runtime.Gosched() // let others try while the key is held
				inside.Add(-1)
				e.release(e.Store, key, g.Token, true)
			}
		})
		if overlaps.Load() > 0 || holds.Load() == 0 {
			e.fail("%d overlaps in %d holds", overlaps.Load(), holds.Load())
		}
	}},
	{Name: "exclusion/refusal-names-the-holder", Text: "A refusal that names a holder names the present one, by the label of its context.", check: func(e *env) {
		holder, err := e.Store.Acquire(lockfx.WithLabel(e.ctx, "host/1/first"), key, e.TTL)
		e.noError("acquire", err)
		if g := e.refused(e.Store, key); g.HeldBy != "" && g.HeldBy != "host/1/first" {
			e.fail("held by %q, want %q", g.HeldBy, "host/1/first")
		}
		e.release(e.Store, key, holder.Token, true)
		_, err = e.Store.Acquire(lockfx.WithLabel(e.ctx, "host/2/second"), key, e.TTL)
		e.noError("acquire", err)
		if g := e.refused(e.Store, key); g.HeldBy != "" && g.HeldBy != "host/2/second" {
			e.fail("held by %q, want %q", g.HeldBy, "host/2/second")
		}
	}},
	{Name: "exclusion/refusal-tells-the-time-left", Text: "RetryAfter is how long the present lease can still last; a Watcher always tells.", check: func(e *env) {
		e.granted(e.Store, key)
		g := e.refused(e.Store, key)
		_, watcher := e.Store.(lockfx.Watcher)
		if g.RetryAfter < 0 || g.RetryAfter > e.TTL+e.Late || watcher && g.RetryAfter == 0 {
			e.fail("retry after %v on a lease of %v", g.RetryAfter, e.TTL)
		}
	}},
	{Name: "exclusion/a-label-goes-with-its-lease", Text: "Whoever acquires without a label is not shown under the label of an earlier holder.", check: func(e *env) {
		holder, err := e.Store.Acquire(lockfx.WithLabel(e.ctx, "host/1/first"), key, e.TTL)
		e.noError("acquire", err)
		e.release(e.Store, key, holder.Token, true)
		e.granted(e.Store, key)
		if g := e.refused(e.Store, key); g.HeldBy == "host/1/first" {
			e.fail("held by %q, who gave the lease back", g.HeldBy)
		}
	}},
	{Name: "exclusion/any-label-works", Text: "A label is for people: whatever it is, it decides nothing, and a refusal shows it, or the beginning of a long one.", check: func(e *env) {
		for i, label := range oddLabels {
			key := fmt.Sprint("label ", i)
			g, err := e.Store.Acquire(lockfx.WithLabel(e.ctx, label), key, e.TTL)
			e.noError(fmt.Sprintf("acquire with label %.40q", label), err)
			if !g.OK {
				e.fail("acquire with label %.40q: refused", label)
			}
			held := e.refused(e.Store, key).HeldBy
			shown := held == label || len(held) >= 100 && strings.HasPrefix(label, held)
			if plain := utf8.ValidString(label) && !strings.Contains(label, "\x00"); plain && held != "" && !shown {
				e.fail("held by %.150q, want %.150q", held, label)
			}
			e.renew(e.Store, key, g.Token, e.TTL, true)
			e.release(e.Store, key, g.Token, true)
		}
	}},
}

var oddLabels = []string{
	"host:1/2,app=a;b|c {d} [e]", `"'\`, "two\nlines", "%s%d", "Ünïcödé 日本語 🔒", strings.Repeat("long ", 200), "a\x00b", "\xff", "-1", "null",
}

// opening is what the other cases rely on: most of them meet a held key.
var opening = []Promise{
	{Name: "exclusion/acquire-never-waits", opens: true, Text: "Acquire answers at once when the key is held; it does not wait for the lease to end.", check: func(e *env) {
		const tries = 5
		// Of each kind the shortest counts: a machine that is slow for a moment shows nothing.
		free, held := e.patience(), e.patience()
		for i := range tries {
			free = min(free, e.acquisition(fmt.Sprint("free ", i), e.patience()).took)
			if free == e.patience() {
				e.fail("an acquisition of a free key has not answered within %v", free)
			}
		}
		e.acquisition(key, e.patience())
		enough := 10*free + e.TTL/100
		for range tries {
			o := e.acquisition(key, enough+e.TTL)
			if held = min(held, o.took); held <= enough {
				return
			}
			if !o.returned {
				break
			}
		}
		e.fail("an acquisition of a held key took at least %v, and of a free one %v: the store waits for the lease to end, or tries again by itself", held, free)
	}},
}

// acquisition measures one of a long lease, whatever comes of it.
func (e *env) acquisition(key string, within time.Duration) outcome {
	return e.timed(within, func(ctx context.Context) (bool, error) {
		g, err := e.Store.Acquire(ctx, key, 20*e.TTL)
		return g.OK, err
	})
}

// outcome is what a call came to.
type outcome struct {
	ok       bool
	err      error
	returned bool
	took     time.Duration
}

// timed makes a call whose context ends after so long, and waits for it that long and
// a little.
func (e *env) timed(within time.Duration, call func(context.Context) (bool, error)) outcome {
	ctx, cancel := context.WithTimeout(e.ctx, within)
	defer cancel()
	began, answer := time.Now(), make(chan outcome, 1)
	e.calls.Go(func() {
		o := outcome{err: errExited, returned: true}
		defer func() {
			o.took = time.Since(began)
			answer <- o
		}()
		defer seen(&o.err)
		o.ok, o.err = call(ctx)
	})
	select {
	case o := <-answer:
		return o
	case <-ctx.Done():
	}
	select {
	case o := <-answer:
		return o
	case <-time.After(e.patience()):
		return outcome{err: context.Cause(ctx), took: time.Since(began)}
	}
}
