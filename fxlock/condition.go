package fxlock

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock/internal/faults"
	"github.com/lockfx/lockfx/fxlock/internal/graph"
	"github.com/lockfx/lockfx/fxlock/internal/plan"
	"github.com/lockfx/lockfx/internal/runscope"
)

// If makes a run evaluate fn, which says whether its body is still wanted: once before it
// waits for the lock, and again under the lock. fn returns a bool, or a bool and an error.
// If it returns false, the body does not run, and the error is a [lockfx.SkippedError], or
// nil with [SkipOn]; either way there is a [lockfx.EventSkipped].
//
// fn takes dig parameters, but only the context and values of the application: before the
// lock is acquired there is no token, and nothing is built for the run. A parameter that
// only a run binds is an error when the option is made. The condition of a [Body] gets
// values of the application directly, others need [Share].
//
// An error or a panic of fn ends the run and releases the lock.
func If(fn any) RunOption {
	c := &condition{text: "fxlock.If(" + graph.FuncText(fn) + ")", fn: reflect.ValueOf(fn)}
	return newRunOption(c.text, func(r *runSettings) {
		if err := plan.CheckPredicate(c.fn); err != nil {
			r.faults = append(r.faults, faults.Of(c.text, err))
			return
		}
		r.condition.set(c)
	})
}

// predicate is a condition with values of the application.
type predicate struct {
	lock *Lock
	fn   reflect.Value
	from *runscope.Source
}

// evaluate reports whether the body is wanted, as it is where there is no condition.
func (p *predicate) evaluate(ctx context.Context) (bool, error) {
	if p == nil {
		return true, nil
	}
	given := ctx // a copy: ctx itself would move to the heap for runs without a condition, too
	scope, err := p.from.Open([]reflect.Value{reflect.ValueOf(&given).Elem()})
	if err != nil {
		return false, p.lock.scopeError("evaluate the condition", err)
	}
	defer scope.Close()
	args, err := scope.Args()
	if err != nil {
		return false, p.lock.scopeError("evaluate the condition", err)
	}
	out := p.fn.Call(args)
	if len(out) == 2 && !out[1].IsNil() {
		return false, p.lock.scopeError("evaluate the condition", out[1].Interface().(error))
	}
	return out[0].Bool(), nil
}

// evaluate evaluates the condition of a run that has not acquired yet, unless the lock was
// disposed of, which the acquisition then says. It is cancelled by the disposal, too.
func (l *Lock) evaluate(ctx context.Context, p *predicate) (bool, error) {
	m := l.machine.Load()
	if p == nil || m.Disposed() {
		return true, nil
	}
	asked, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(m.Disposing(), func() { cancel(lockfx.ErrDisposed) })()
	return p.evaluate(asked)
}

// predicateOf returns the condition of a run that is only known now, or nil when there is
// none. What it takes must be shared.
func (l *Lock) predicateOf(run runSettings) (*predicate, error) {
	c := run.condition.value
	if c == nil {
		return nil, nil
	}
	if known, ok := l.predicates.Load(c); ok {
		return known.(*predicate), nil
	}
	from, err := l.settings.planner.SharedCondition(c.fn.Type(), l.shared)
	if err != nil {
		return nil, l.scopeError("check the options", faults.Of(c.text, err))
	}
	known := &predicate{l, c.fn, from}
	if c == l.settings.run.condition.value { // others may be made for each run
		l.predicates.Store(c, known)
	}
	return known, nil
}

// SkipOn suppresses the error of a run that did not begin for one of reasons: the run is
// skipped, and returns nil and zero values. The reasons can be
//
//   - [lockfx.ErrNotAcquired]: another holds the lock, also after a [Wait]; for schedulers
//     that should not report "another replica runs this" as a failure.
//   - [lockfx.ErrSkipped]: [If] returned false.
//
// An error that the body returns is never suppressed, even if it matches: it may be the
// refusal of another lock, after half of the work. Nor is an outage, a wait that was
// cancelled or ended by the stop of the application, or a run inside a run of the same lock.
//
// A skipped run emits a [lockfx.EventSkipped], whose Err is the suppressed error.
func SkipOn(reasons ...error) RunOption {
	names := make([]string, len(reasons))
	var skip skips
	known := len(reasons) > 0
	for i, reason := range reasons {
		switch reason {
		case lockfx.ErrNotAcquired: //nolint:errorlint // the sentinels themselves are meant
			names[i], skip.held = "lockfx.ErrNotAcquired", true
		case lockfx.ErrSkipped:
			names[i], skip.unwanted = "lockfx.ErrSkipped", true
		default:
			names[i], known = fmt.Sprintf("%v", reason), false
		}
	}
	text := "fxlock.SkipOn(" + strings.Join(names, ", ") + ")"
	return newRunOption(text, func(r *runSettings) {
		if !known {
			r.fault(text, "takes lockfx.ErrNotAcquired, lockfx.ErrSkipped, or both")
		}
		r.skipOn.set(skip)
	})
}

// notBegun ends a run whose body did not begin because of reason, and returns what its
// caller gets. failure is what else went wrong.
func (l *Lock) notBegun(skip skips, reason, failure error) error {
	unwanted := errors.Is(reason, lockfx.ErrSkipped)
	skipped := skip.unwanted && unwanted || skip.held && contention(reason)
	if unwanted || skipped {
		l.machine.Load().Announce(lockfx.Event{Kind: lockfx.EventSkipped, Err: reason})
	}
	if skipped {
		return failure
	}
	return join(reason, failure)
}

// contention reports whether another has the lock, and nothing else is wrong.
func contention(err error) bool {
	var refusal *lockfx.NotAcquiredError
	nested := errors.As(err, &refusal) && refusal.Nested
	return errors.Is(err, lockfx.ErrNotAcquired) && !nested && !errors.Is(err, context.Canceled) && !errors.Is(err, lockfx.ErrDisposed)
}
