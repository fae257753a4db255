package storetest

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// caseTimeout ends the calls of a case that hangs.
const caseTimeout = 2 * time.Minute

var errCaseTimeout = fmt.Errorf("the case has taken %v", caseTimeout)

// returnWithin is how long a call of the store may go on when its context has ended.
const returnWithin = 20 * time.Second

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
	outer, wrap := ctx, func(run func()) { run() }
	if h.Wrap != nil { // a bubble must not wait on a channel from outside
		outer, wrap = context.WithoutCancel(ctx), h.Wrap
	}
	wrap(func() {
		ctx, cancel := context.WithTimeoutCause(outer, caseTimeout, errCaseTimeout)
		defer cancel()
		err = p.try(&env{Harness: h, ctx: ctx})
	})
	if ctx.Err() != nil {
		return true, context.Cause(ctx)
	}
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
// test, and one that never returns must not hold it up.
func (p Promise) try(e *env) error {
	result := make(chan error, 1)
	go func() {
		err := errExited
		defer func() {
			if e.Wrap != nil { // a bubble has to wait for what was started in it
				e.calls.Wait()
			}
			result <- err
		}()
		defer seen(&err)
		p.check(e)
		err = nil
	}()
	select {
	case err := <-result:
		return err
	case <-e.ctx.Done():
	}
	select {
	case err := <-result:
		return err
	case <-time.After(returnWithin):
		return fmt.Errorf("%w, and %v later a call of the store has not returned", context.Cause(e.ctx), returnWithin)
	}
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
