package storetest

import (
	"time"

	"github.com/lockfx/lockfx"
)

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
