package storetest

import (
	"context"
	"slices"
	"testing"
)

// A Promise is one case of the kit.
type Promise struct {
	// Name is family/case, such as "tokens/rise-across-release".
	Name string
	// Text is the promise in one sentence.
	Text string

	opens bool                // if broken, the others are not tried
	needs func(*Harness) bool // nil: always runs
	check func(*env)
}

// Promises returns the cases, in the order in which they run.
func Promises() []Promise {
	var all []Promise
	for _, family := range [][]Promise{
		opening, exclusion, expiry, tokens, renewal, release, racing, contexts, late, keys, ttls, outages, clocks,
		watching, enduring, inspecting, breaking, manyRenewals(), handles,
	} {
		all = append(all, family...)
	}
	return append(all, waivers(all))
}

// waivers is what the author of a harness owes: a waiver that is misspelt waives nothing.
func waivers(all []Promise) Promise {
	return Promise{Name: "harness/waivers-name-promises", Text: "What a harness waives are promises of the kit.", check: func(e *env) {
		for name := range e.Waive {
			if !slices.ContainsFunc(all, func(p Promise) bool { return p.Name == name }) {
				e.fail("%q is waived, and is no promise", name)
			}
		}
	}}
}

// Run runs every case that the harness allows as a subtest of its name.
func Run(t *testing.T, newHarness Factory) {
	t.Helper()
	run(t, newHarness, func(*testing.T) {})
}

// RunParallel is [Run] with the cases side by side, for an engine whose leases take
// long to end. What one harness does, such as a restart, must not disturb the others.
func RunParallel(t *testing.T, newHarness Factory) {
	t.Helper()
	run(t, newHarness, (*testing.T).Parallel)
}

func run(t *testing.T, newHarness Factory, begin func(*testing.T)) {
	t.Helper()
	for _, p := range Promises() {
		kept := t.Run(p.Name, func(t *testing.T) {
			if !p.opens {
				begin(t)
			}
			ran, err := p.run(t.Context(), newHarness)
			switch {
			case err != nil:
				t.Error(err)
			case !ran:
				t.Logf("not applicable: %s", p.Text)
			}
		})
		if p.opens && !kept {
			t.Fatalf("the other promises are not tried: without %s each of them takes as long as the leases of its case", p.Name)
		}
	}
}

// Check runs every case that the harness allows and returns the broken promises by
// name, each with what was seen. If the first of [Promises] is broken it is the only
// one: without it the others would take as long as the leases of their cases.
//
// When ctx ends, so does Check, at the latest after the calls that the store has then
// under way, and some seconds; the promises that were not tried hold the cause of ctx.
func Check(ctx context.Context, newHarness Factory) map[string]error {
	broken := map[string]error{}
	for _, p := range Promises() {
		if ctx.Err() != nil {
			broken[p.Name] = context.Cause(ctx)
			continue
		}
		if _, err := p.run(ctx, newHarness); err != nil {
			broken[p.Name] = err
			if p.opens {
				break
			}
		}
	}
	return broken
}
