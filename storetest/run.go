package storetest

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"testing"
	"time"
)

// A Promise is one case of the kit.
type Promise struct {
	// Name is family/case, such as "tokens/rise-across-release".
	Name string
	// Text is the promise in one sentence.
	Text string

	needs func(*Harness) bool // nil: always runs
	check func(*env)
}

// Promises returns the cases, in the order in which they run.
func Promises() []Promise {
	var all []Promise
	for _, family := range [][]Promise{
		exclusion, expiry, tokens, renewal, release, contexts, late, keys, ttls, outages, clocks,
		watching, inspecting, breaking, manyRenewals, handles,
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
		t.Run(p.Name, func(t *testing.T) {
			begin(t)
			ran, err := p.run(t.Context(), newHarness)
			switch {
			case err != nil:
				t.Error(err)
			case !ran:
				t.Logf("not applicable: %s", p.Text)
			}
		})
	}
}

// Check runs every case that the harness allows and returns the broken promises by
// name, each with what was seen.
func Check(ctx context.Context, newHarness Factory) map[string]error {
	broken := map[string]error{}
	for _, p := range Promises() {
		if ctx.Err() != nil {
			broken[p.Name] = context.Cause(ctx)
			continue
		}
		if _, err := p.run(ctx, newHarness); err != nil {
			broken[p.Name] = err
		}
	}
	return broken
}

// caseTimeout ends the calls of a case that hangs.
const caseTimeout = 2 * time.Minute

// attempts is how often a case is tried on a machine that is too slow for its leases.
const attempts = 5

// run reports whether the case applies, and how the promise was broken.
func (p Promise) run(ctx context.Context, newHarness Factory) (ran bool, err error) {
	for range attempts {
		ran, err = p.attempt(ctx, newHarness)
		if !errors.Is(err, errTooSlow) {
			break
		}
	}
	return ran, err
}

func (p Promise) attempt(ctx context.Context, newHarness Factory) (ran bool, err error) {
	h, err := newHarness()
	if err != nil {
		return false, fmt.Errorf("%s: harness: %w", p.Name, err)
	}
	if h.Close != nil {
		defer h.Close()
	}
	if p.needs != nil && !p.needs(h) {
		return false, nil
	}
	wrap := h.Wrap
	if wrap == nil {
		wrap = func(run func()) { run() }
	}
	wrap(func() {
		// Without cancel: a bubble must not wait on a channel from outside.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), caseTimeout)
		defer cancel()
		err = p.try(&env{Harness: h, ctx: ctx})
	})
	reason, waived := h.Waive[p.Name]
	switch {
	case waived && err == nil:
		return true, fmt.Errorf("%s: the waiver is stale: the promise is kept (%s)", p.Name, reason)
	case waived:
		return true, nil
	case err != nil:
		return true, fmt.Errorf("%s\n\t%w", p.Text, err)
	}
	return true, nil
}

// try runs the check in a goroutine of its own: a store that ends it must not end the
// test.
func (p Promise) try(e *env) (err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer seen(&err)
		err = errExited
		p.check(e)
		err = nil
	}()
	<-done
	return err
}

var errExited = errors.New("the store ended the goroutine of its caller")

// seen turns what was found, and a panic of the store, into an error. It is deferred.
func seen(err *error) {
	switch r := recover().(type) {
	case nil:
	case broken:
		*err = r.error
	default:
		*err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
	}
}

// broken is what a check panics with.
type broken struct{ error }
