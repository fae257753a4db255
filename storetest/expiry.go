package storetest

import (
	"time"

	"github.com/lockfx/lockfx"
)

var expiry = []Promise{
	{Name: "expiry/unexpired-lease-is-kept", Text: "A lease lasts for its ttl.", check: func(e *env) {
		e.granted(e.Store, key)
		e.sleep(e.TTL / 2)
		e.refused(e.Store, key)
	}},
	{Name: "expiry/expired-lease-is-taken-in-one-call", Text: "The first call after the expiry is granted, without another call before it.", check: func(e *env) {
		first := e.granted(e.Store, key)
		e.outlive(e.TTL)
		e.rises(first, e.granted(e.Store, key))
	}},
	{Name: "expiry/time-left-shrinks", Text: "RetryAfter shrinks as the lease grows old.", check: func(e *env) {
		e.granted(e.Store, key)
		early := e.refused(e.Store, key).RetryAfter
		e.sleep(e.TTL / 2)
		late := e.refused(e.Store, key).RetryAfter
		if early > 0 && late >= early {
			e.fail("retry after %v, and half a lease later after %v", early, late)
		}
	}},
	{Name: "expiry/each-acquisition-has-its-own-ttl", Text: "The ttl is that of the acquisition, not of an earlier one.", check: func(e *env) {
		long := e.grantedFor(e.Store, key, 10*e.TTL)
		e.release(e.Store, key, long, true)
		e.granted(e.Store, key)
		e.outlive(e.TTL)
		e.granted(e.Store, key)
	}},
	{Name: "expiry/a-refused-caller-prolongs-nothing", Text: "Those who are refused do not prolong the lease that they met.", check: func(e *env) {
		e.granted(e.Store, key)
		for range 4 {
			e.sleep(e.TTL / 8)
			e.refused(e.Store, key)
		}
		e.outlive(e.TTL / 2)
		e.granted(e.Store, key)
	}},
	{Name: "expiry/held-for-ten-leases-then-frees", Text: "A lease that is renewed ten times over and then left alone expires.", check: func(e *env) {
		token := e.granted(e.Store, key)
		for range 30 {
			e.sleep(e.TTL / 3)
			e.renew(e.Store, key, token, e.TTL, true)
		}
		e.refused(e.Store, key)
		e.outlive(e.TTL)
		e.rises(token, e.granted(e.Store, key))
	}},
	{Name: "expiry/no-lease-ends-early", Text: "A lease is kept to its end: its holder relies on all of it but 1%.", check: func(e *env) {
		asked := e.latest()
		e.granted(e.Store, key)
		e.endsNotBefore(asked.Add(e.TTL))
	}},
	{Name: "expiry/an-old-lease-ends-no-younger-one", Text: "When the time of a lease is over that was given back, the next holder's lease goes on.", check: func(e *env) {
		e.release(e.Store, key, e.granted(e.Store, key), true)
		token := e.grantedFor(e.Store, key, 20*e.TTL)
		e.outlive(e.TTL)
		e.refused(e.Store, key)
		e.renew(e.Store, key, token, e.TTL, true)
	}},
	{Name: "expiry/time-left-is-enough", Text: "A caller that waits for the time left in a refusal finds the key free, also if the lease was renewed.", check: func(e *env) {
		e.renew(e.Store, key, e.granted(e.Store, key), 3*e.TTL/2+e.Late, true)
		if left := e.refused(e.Store, key).RetryAfter; left > 0 {
			e.outlive(left)
			e.granted(e.Store, key)
		}
	}},
}

// endsNotBefore breaks the promise if the lease on key is over before end, but for the
// difference of two clocks' rates.
func (e *env) endsNotBefore(end time.Time) {
	step := e.TTL / 200
	for e.sleep(9 * e.TTL / 10); e.latest().Before(end); e.sleep(step) {
		if g := e.acquire(e.Store, key); g.OK {
			if early := end.Sub(e.latest()); early > step {
				e.fail("acquire %q: granted %v before the lease of %v was over", key, early, e.TTL)
			}
			return
		}
	}
}

var clocks = []Promise{
	{
		Name: "clocks/client-ahead-changes-nothing", Text: "The clock of a client that is an hour ahead changes nothing.", needs: canSkew,
		check: func(e *env) { e.skewed(time.Hour) },
	},
	{
		Name: "clocks/client-behind-changes-nothing", Text: "The clock of a client that is an hour behind changes nothing.", needs: canSkew,
		check: func(e *env) { e.skewed(-time.Hour) },
	},
	{
		Name: "clocks/tokens-rise-when-the-engine-is-set-back", Text: "Tokens rise, however far the clock of the engine is set back.", needs: canStep,
		check: func(e *env) {
			last := e.granted(e.Store, key)
			for _, step := range []time.Duration{-time.Hour, -time.Minute} {
				e.noError("set the clock", e.StepClock(step))
				e.release(e.Store, key, last, true)
				next := e.granted(e.Store, key)
				e.rises(last, next)
				last = next
			}
		},
	},
	{
		Name: "clocks/what-was-freed-stays-free", Text: "A lease that was given back stays so, however far the clock of the engine is set back.", needs: canStep,
		check: func(e *env) {
			token := e.granted(e.Store, key)
			e.sleep(e.TTL / 2)
			e.release(e.Store, key, token, true)
			e.noError("set the clock", e.StepClock(-time.Hour))
			e.renew(e.Store, key, token, e.TTL, false)
			e.release(e.Store, key, token, false)
			e.granted(e.Store, key)
		},
	},
}

func canStep(h *Harness) bool { return h.StepClock != nil }

func canSkew(h *Harness) bool { return h.SkewClientClock != nil }

// skewed checks exclusion, expiry and tokens between a client whose clock is off
// and one whose clock is right.
func (e *env) skewed(d time.Duration) {
	off, err := e.SkewClientClock(d)
	e.noError("skew", err)
	for _, pair := range [][2]lockfx.Store{{off, e.Store}, {e.Store, off}} {
		first := e.granted(pair[0], key)
		e.refused(pair[1], key)
		e.sleep(e.TTL / 2)
		e.refused(pair[1], key)
		e.renew(pair[0], key, first, e.TTL, true)
		e.outlive(e.TTL)
		second := e.granted(pair[1], key)
		e.rises(first, second)
		e.release(pair[1], key, second, true)
		third := e.granted(pair[0], key)
		e.rises(second, third)
		e.release(pair[0], key, third, true)
	}
}
