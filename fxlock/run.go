package fxlock

import (
	"context"
	"reflect"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock/internal/plan"
	"github.com/lockfx/lockfx/internal/lifecycle"
	"github.com/lockfx/lockfx/internal/queue"
)

// Do runs body under the lock without dependency injection, which costs least: acquire,
// body, release. See [Lock.Run] for the context and the errors. A [lockfx.ScopeError]
// says that the lease was lost, or ctx ended, before body began.
func (l *Lock) Do(ctx context.Context, body func(context.Context, lockfx.Holder) error, opts ...RunOption) error {
	run, err := l.settings.settle(opts)
	if err != nil {
		return l.scopeError("check the options", err)
	}
	if body == nil {
		return l.scopeError("check the body", plan.ErrNilBody)
	}
	condition, err := l.predicateOf(run)
	if err != nil {
		return err
	}
	return l.run(ctx, &job{settings: run, condition: condition}, func(ctx context.Context, h *lifecycle.Hold, _ []reflect.Value) error {
		return body(ctx, h)
	})
}

// DoValue is [Lock.Do] for a body that returns a value. If the body did not run, the
// value is zero; if it ran, it is the body's, even if there is an error.
func DoValue[T any](ctx context.Context, l *Lock, body func(context.Context, lockfx.Holder) (T, error), opts ...RunOption) (T, error) {
	var v T
	if body == nil {
		return v, l.scopeError("check the body", plan.ErrNilBody)
	}
	err := l.Do(ctx, func(ctx context.Context, h lockfx.Holder) (err error) {
		v, err = body(ctx, h)
		return err
	}, opts...)
	return v, err
}

// Run runs body under the lock: acquire, build a new scope that binds the fencing token
// and the holder, call body, tear the scope down in reverse order while the token is
// valid, release. Teardown and release always happen, even if body panics or ends its
// goroutine.
//
// body is a function that returns nothing or an error. Its parameters are dig
// parameters of any kind; the package documentation lists what a run binds.
// [Share] makes values of the application available to it.
//
// The context that body can take ends with ctx, with the loss of the lease (its
// cause is then a [lockfx.LostError]) and with the stop of the application (cause
// [lockfx.ErrDisposed]).
//
// If nothing else failed, the error is body's own. Otherwise the errors are joined,
// body's first, and errors.Is finds each of them. If the lease was lost, there is a
// LostError even if body returned nil. If body did not run, the error is a
// [lockfx.NotAcquiredError] when another holds the lock, and a [lockfx.ScopeError] when
// the scope could not be built. The error does not say whether body returned nil. A
// caller that must know whether the work was done lets body set a variable or return a
// value ([RunValue]), which is returned with any error.
func (l *Lock) Run(ctx context.Context, body any, opts ...RunOption) error {
	return l.runBody(ctx, body, reflect.Value{}, opts)
}

// RunValue is [Lock.Run] for a body that returns a T, or a T and an error. If the body
// did not run, the value is zero; if it ran, it is the body's, even if there is an error.
func RunValue[T any](ctx context.Context, l *Lock, body any, opts ...RunOption) (T, error) {
	var v T
	err := l.runBody(ctx, body, reflect.ValueOf(&v).Elem(), opts)
	return v, err
}

// runBody runs a body that is only known now. Its value goes to dst, if that is
// valid.
func (l *Lock) runBody(ctx context.Context, body any, dst reflect.Value, opts []RunOption) error {
	fn := reflect.ValueOf(body)
	var result reflect.Type
	if dst.IsValid() {
		result = dst.Type()
	}
	if err := plan.CheckFunc(fn, result); err != nil {
		return l.scopeError("check the body", err)
	}
	run, err := l.settings.settle(opts)
	if err != nil {
		return l.scopeError("check the options", err)
	}
	src, err := l.sourceFor(fn.Type())
	if err != nil {
		return err
	}
	condition, err := l.predicateOf(run)
	if err != nil {
		return err
	}
	return l.run(ctx, &job{settings: run, condition: condition, source: src}, func(_ context.Context, _ *lifecycle.Hold, args []reflect.Value) error {
		out := fn.Call(args)
		if dst.IsValid() {
			dst.Set(out[0])
			out = out[1:]
		}
		if len(out) == 0 {
			return nil
		}
		err, _ := out[0].Interface().(error)
		return err
	})
}

// job is one run: what it asks for, and how.
type job struct {
	settings  runSettings
	condition *predicate      // or nil
	source    *plan.Source    // of the scope; nil for a run without one
	inputs    []reflect.Value // of the call
	notify    *callbacks      // or nil
}

// callbacks are for a campaign or a start, to which the error of a run says what it came to
// apart from what its body returned: that goes to body.
type callbacks struct {
	missed  func(error)                                // an attempt did not get the lock; may be nil
	granted func(*lifecycle.Hold)                      // the lock is held; may be nil
	body    func(h *lifecycle.Hold, call func() error) // calls the body
}

// run takes a run through its legs, in order:
//
//	condition, wait and acquire, condition again, scope, hooks, body, teardown, release
//
// A leg begins when the one before it went well. But a scope that was begun is torn down,
// and a lease that was granted is released, whatever happens: also when body panics or
// ends its goroutine.
func (l *Lock) run(ctx context.Context, j *job, body func(context.Context, *lifecycle.Hold, []reflect.Value) error) error {
	switch wanted, err := l.evaluate(ctx, j.condition); {
	case err != nil:
		return err
	case !wanted:
		return l.notBegun(j.settings.skipOn.value, &lockfx.SkippedError{Key: l.Key()}, nil)
	}

	// Wait and acquire; and release, when what follows has ended.
	given := lockfx.LabelFrom(ctx)
	began, unwanted := false, false
	err := l.queue.Run(l.settings.labelled(ctx, j.settings.label), l.request(j), func(ctx context.Context, h *lifecycle.Hold) (err error) {
		ctx = unlabelled(ctx, given)
		j.granted(h)

		wanted, err := j.condition.evaluate(ctx)
		if err != nil {
			return err
		}
		if began, unwanted = wanted, !wanted; unwanted {
			return nil
		}

		token := h.Token()
		if err := l.mayStart(ctx, token); err != nil {
			return err
		}
		var args []reflect.Value
		if j.source != nil {
			scope := l.newScope(ctx)
			defer func() { // Teardown, while the lease is held.
				err = join(err, scope.close(h, token))
			}()
			if args, err = scope.open(j.source, h, token, j.inputs); err != nil {
				return err
			}
			if err := scope.start(); err != nil {
				return err
			}
			if err := l.mayStart(ctx, h.Token()); err != nil {
				return err
			}
		}

		h.Owe() // not before: nothing was done that should not be done again soon
		return body(ctx, h, args)
	})

	switch {
	case unwanted && j.notify != nil: // the lock's own event says if the release failed
		return l.notBegun(j.settings.skipOn.value, &lockfx.SkippedError{Key: l.Key(), Acquired: true}, nil)
	case unwanted:
		return l.notBegun(j.settings.skipOn.value, &lockfx.SkippedError{Key: l.Key(), Acquired: true}, err)
	case err != nil && !began:
		return l.notBegun(j.settings.skipOn.value, err, nil)
	}
	return err
}

// request is what j asks of the queue.
func (l *Lock) request(j *job) queue.Request {
	run := &j.settings
	request := queue.Request{
		Machine: l.machine.Load(),
		Limit:   run.wait.value,
		Terms:   lifecycle.Terms{MinHold: run.minHold.value, OweLater: true, MaxHold: run.maxHold.value},
	}
	if enter := run.gate.value; enter != nil {
		request.TTL = l.settings.ttl
		request.Gate = func(ctx context.Context, limit time.Duration) (func() error, string, error) {
			return enter(ctx, l.Key(), limit)
		}
	}
	if j.notify != nil {
		request.Missed = j.notify.missed
	}
	return request
}

// granted notifies whom it concerns that the lock is held.
func (j *job) granted(h *lifecycle.Hold) {
	if j.notify != nil && j.notify.granted != nil {
		j.notify.granted(h)
	}
}

// mayStart refuses to go on where the caller gave up, the application stopped, or the lease
// was lost: token, the holder's, is 0 then.
func (l *Lock) mayStart(ctx context.Context, token lockfx.Token) error {
	switch cause := context.Cause(ctx); {
	case cause != nil:
		return l.scopeError("start the body", cause)
	case token == 0:
		return l.scopeError("start the body", lockfx.ErrLost)
	}
	return nil
}
