//go:build torture

package fxlock_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// times has what a call took, in ns, in each of some rounds.
type times []float64

// interleaved times calls of each contender in turn, in rounds.
func interleaved(t *testing.T, rounds, calls int, contenders ...func() error) []times {
	t.Helper()
	took := make([]times, len(contenders))
	for range rounds {
		for i, call := range contenders {
			runtime.GC() // nobody pays for the garbage of another
			began := time.Now()
			for range calls {
				if err := call(); err != nil {
					t.Fatal(err)
				}
			}
			took[i] = append(took[i], float64(time.Since(began))/float64(calls))
		}
	}
	return took
}

func (x times) median() float64 {
	s := slices.Sorted(slices.Values(x))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// less returns x less y, round by round.
func (x times) less(y times) times { return x.each(y, func(x, y float64) float64 { return x - y }) }

// over returns x over y, round by round: what disturbs a round disturbs both.
func (x times) over(y times) times { return x.each(y, func(x, y float64) float64 { return x / y }) }

func (x times) each(y times, f func(x, y float64) float64) times {
	out := make(times, len(x))
	for i := range x {
		out[i] = f(x[i], y[i])
	}
	return out
}

// allocs returns the objects that a call allocates, as a benchmark reports them.
func allocs(t *testing.T, call func() error) float64 {
	t.Helper()
	return testing.AllocsPerRun(1000, func() {
		if err := call(); err != nil {
			t.Fatal(err)
		}
	})
}

// patiently measures up to three times, until there is no fault.
func patiently[M interface{ fault() error }](measure func() M) (M, error) {
	var m M
	var err error
	for range attempts {
		if m = measure(); m.fault() == nil {
			return m, nil
		}
		err = m.fault()
	}
	return m, err
}

// A budget is what a call may cost in itself.
type budget struct{ allocs, ns float64 }

const (
	maxDoAllocs = 16
	maxDoNs     = 5000
)

func (b budget) fault() error {
	if b.allocs > maxDoAllocs || b.ns > maxDoNs {
		return fmt.Errorf("%v; at most %v objects and %v ns are allowed", b, maxDoAllocs, maxDoNs)
	}
	return nil
}

func (b budget) String() string { return fmt.Sprintf("%.0f objects, %.0f ns", b.allocs, b.ns) }

func TestGatePriceOfDo(t *testing.T) {
	defer goleak.VerifyNone(t)
	t.Run("do", func(t *testing.T) {
		app := newPriceApp(t)
		measure := func(call func() error) func() budget {
			return func() budget {
				return budget{allocs(t, call), interleaved(t, 30, 2000, call)[0].median()}
			}
		}
		do, err := patiently(measure(app.do))
		if err != nil {
			t.Error(err)
		}
		wasteful, err := patiently(measure(func() error { return errors.Join(app.do(), app.do()) }))
		if err == nil {
			t.Errorf("twice the price passed: %v", wasteful)
		}
		t.Logf("GATE price of Do: %v; control: twice Do was found: %v", do, wasteful)
	})
}

// A price is what a run costs, as a multiple of dig by hand.
type price struct{ allocs, time, ownAllocs, ownTime float64 }

const (
	maxAllocsRatio = 1.5
	maxTimeRatio   = 1.3
)

// fault judges the whole run. Its scope alone, which is the run less what Do costs,
// would be the milder measure.
func (p price) fault() error {
	if p.allocs > maxAllocsRatio || p.time > maxTimeRatio {
		return fmt.Errorf("%v; at most %v and %v are allowed", p, maxAllocsRatio, maxTimeRatio)
	}
	return nil
}

func (p price) String() string {
	return fmt.Sprintf("%.2f times the objects and %.2f times the time of dig by hand (%.2f and %.2f less what Do costs)",
		p.allocs, p.time, p.ownAllocs, p.ownTime)
}

func TestGatePriceOfRun(t *testing.T) {
	defer goleak.VerifyNone(t)
	t.Run("run", func(t *testing.T) {
		app := newPriceApp(t)
		measure := func(run func() error) func() price {
			return func() price {
				took := interleaved(t, 30, 200, run, app.do, app.digByHand)
				objects, do, byHand := allocs(t, run), allocs(t, app.do), allocs(t, app.digByHand)
				return price{
					allocs: objects / byHand, time: took[0].over(took[2]).median(),
					ownAllocs: (objects - do) / byHand, ownTime: took[0].less(took[1]).over(took[2]).median(),
				}
			}
		}
		for name, run := range map[string]func() error{"Lock.Run": app.run, "Body": app.call} {
			p, err := patiently(measure(run))
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			t.Logf("GATE price of %s, one value and the token: %v", name, p)
		}
		wasteful, err := patiently(measure(func() error { return errors.Join(app.run(), app.digByHand()) }))
		if err == nil {
			t.Errorf("a scope too many passed: %v", wasteful)
		}
		t.Logf("GATE control of price of a run, a scope too many: found, %v", wasteful)
	})
}
