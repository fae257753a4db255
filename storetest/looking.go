package storetest

import (
	"time"

	"github.com/lockfx/lockfx"
)

func isInspector(h *Harness) bool { _, ok := h.Store.(lockfx.Inspector); return ok }

func (e *env) inspect() lockfx.Lease {
	lease, err := e.Store.(lockfx.Inspector).Inspect(e.ctx, key)
	e.noError("inspect", err)
	return lease
}

var inspecting = []Promise{
	{Name: "inspect/shows-the-lease", Text: "Inspect shows token, label and time left of the lease.", needs: isInspector, check: func(e *env) {
		g, err := e.Store.Acquire(lockfx.WithLabel(e.ctx, "host/1/app"), key, e.TTL)
		e.noError("acquire", err)
		lease := e.inspect()
		if lease.Token != g.Token || lease.Label != "host/1/app" || lease.TimeLeft <= 0 || lease.TimeLeft > e.TTL+e.Late {
			e.fail("%+v; want token %d, label %q and at most %v left", lease, g.Token, "host/1/app", e.TTL)
		}
	}},
	{Name: "inspect/time-left-is-right", Text: "The time left shrinks as the lease grows old, and follows its renewals.", needs: isInspector, check: func(e *env) {
		shows := func(asked time.Time, least, most time.Duration) {
			left, slack := e.inspect().TimeLeft, e.TTL/10
			if left > most+e.Late+slack || left < least-e.latest().Sub(asked)-slack {
				e.fail("%v left, want about %v", left, most)
			}
		}
		asked := e.latest()
		token := e.granted(e.Store, key)
		e.sleep(e.TTL / 2)
		shows(asked, e.TTL, e.TTL/2)
		asked = e.latest()
		e.renew(e.Store, key, token, 2*e.TTL, true)
		shows(asked, 2*e.TTL, 2*e.TTL)
	}},
	{Name: "inspect/free-key-is-zero", Text: "A key that is free, released or expired shows the zero lease.", needs: isInspector, check: func(e *env) {
		free := func(what string) {
			if lease := e.inspect(); lease != (lockfx.Lease{}) {
				e.fail("%s: %+v, want the zero lease", what, lease)
			}
		}
		free("never seen")
		e.release(e.Store, key, e.granted(e.Store, key), true)
		free("released")
		e.granted(e.Store, key)
		e.outlive(e.TTL)
		free("expired")
	}},
	{Name: "inspect/changes-nothing", Text: "Inspecting neither prolongs nor frees a lease.", needs: isInspector, check: func(e *env) {
		token := e.granted(e.Store, key)
		e.sleep(e.TTL / 2)
		e.inspect()
		e.refused(e.Store, key)
		e.outlive(e.TTL / 2)
		e.rises(token, e.granted(e.Store, key))
	}},
	{Name: "inspect/refuses-a-bad-key", Text: "A bad key is refused with an error that names the rule.", needs: isInspector, check: func(e *env) {
		_, err := e.Store.(lockfx.Inspector).Inspect(e.ctx, "")
		e.configFault("inspect", false, err)
	}},
}

func isBreaker(h *Harness) bool { _, ok := h.Store.(lockfx.Breaker); return ok }

func (e *env) breaks(want bool) {
	ok, err := e.Store.(lockfx.Breaker).Break(e.ctx, key)
	e.noError("break", err)
	if ok != want {
		e.fail("break %q: %v, want %v", key, ok, want)
	}
}

var breaking = []Promise{
	{Name: "break/frees-and-the-token-rises", Text: "A broken key is free, and the next token is greater.", needs: isBreaker, check: func(e *env) {
		token := e.grantedFor(e.Store, key, 20*e.TTL)
		e.breaks(true)
		e.rises(token, e.granted(e.Store, key))
	}},
	{Name: "break/the-broken-holder-is-refused", Text: "A broken holder can neither renew nor release, also after the next acquisition.", needs: isBreaker, check: func(e *env) {
		old := e.grantedFor(e.Store, key, 20*e.TTL)
		e.breaks(true)
		e.renew(e.Store, key, old, e.TTL, false)
		token := e.grantedFor(e.Store, key, 20*e.TTL)
		e.renew(e.Store, key, old, e.TTL, false)
		e.release(e.Store, key, old, false)
		e.renew(e.Store, key, token, e.TTL, true)
	}},
	{Name: "break/free-key-is-false", Text: "Breaking a free key is false.", needs: isBreaker, check: func(e *env) {
		e.breaks(false)
		e.release(e.Store, key, e.granted(e.Store, key), true)
		e.breaks(false)
		e.granted(e.Store, key)
		e.barelyOutlive(e.TTL)
		e.breaks(false)
	}},
	{
		Name: "break/wakes", Text: "Breaking a key wakes those who watch it.",
		needs: func(h *Harness) bool { return isBreaker(h) && isWatcher(h) },
		check: func(e *env) {
			e.grantedFor(e.Store, key, e.longLease())
			freed, stop := e.watch(key)
			defer stop()
			e.breaks(true)
			e.wakes(freed, "a break")
		},
	},
	{Name: "break/refuses-a-bad-key", Text: "A bad key is refused with an error that names the rule.", needs: isBreaker, check: func(e *env) {
		ok, err := e.Store.(lockfx.Breaker).Break(e.ctx, "")
		e.configFault("break", ok, err)
	}},
}
