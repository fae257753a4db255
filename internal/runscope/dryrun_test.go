package runscope

import (
	"reflect"
	"strings"
	"testing"
)

// TestDryRunFindsWhatThePlanForgot plants plans that do not hold what dig needs.
func TestDryRunFindsWhatThePlanForgot(t *testing.T) {
	plan := func() (*Plan, []*ctor) {
		k, err := inspect(0, Ctor{Build: give(func(string) *int { return nil })})
		if err != nil {
			t.Fatal(err)
		}
		p, err := Compile(Spec{
			Body:  reflect.TypeFor[func(*int, bool, float64)](),
			Run:   []Key{{Type: reflect.TypeFor[bool]()}},
			Ctors: []Ctor{k.Ctor},
		})
		if err != nil {
			t.Fatal(err)
		}
		return p, p.ctors
	}
	check := func(want string, plant func(p *Plan, ctors []*ctor) []*ctor) {
		t.Helper()
		p, ctors := plan()
		err := p.dryRun(plant(p, ctors))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
	check("missing type: float64", func(p *Plan, ctors []*ctor) []*ctor { p.mirror = bundle{}; return ctors })
	check("missing type: bool", func(p *Plan, ctors []*ctor) []*ctor { p.runs = bundle{}; return ctors })
	check("missing type: *int", func(*Plan, []*ctor) []*ctor { return nil })
	check("already provided", func(_ *Plan, ctors []*ctor) []*ctor { return append(ctors, ctors...) })
}
