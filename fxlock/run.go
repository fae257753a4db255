package fxlock

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock/internal/graph"
	"github.com/lockfx/lockfx/internal/lifecycle"
)

// Do runs body under the lock, without dependency injection and so at the least
// cost: acquire, body, release. See [Lock.Run] for the context and the errors; a
// [lockfx.ScopeError] says that the lease was lost, or ctx ended, before body began.
func (l *Lock) Do(ctx context.Context, body func(context.Context, lockfx.Holder) error, opts ...RunOption) error {
	run, err := l.settle(opts)
	if err != nil {
		return err
	}
	if body == nil {
		return l.scopeError("check the body", errNilBody)
	}
	condition, err := l.predicateOf(run)
	if err != nil {
		return err
	}
	return l.under(ctx, run, condition, func(ctx context.Context, h *lifecycle.Hold) error {
		if err := l.mayStart(ctx, h); err != nil {
			return err
		}
		h.Owe()
		return body(ctx, h)
	})
}

// DoValue is [Lock.Do] for a body that returns a value. When the body did not run
// the value is zero; when it ran, it is the body's, whatever the error.
func DoValue[T any](ctx context.Context, l *Lock, body func(context.Context, lockfx.Holder) (T, error), opts ...RunOption) (T, error) {
	var v T
	if body == nil {
		return v, l.scopeError("check the body", errNilBody)
	}
	err := l.Do(ctx, func(ctx context.Context, h lockfx.Holder) (err error) {
		v, err = body(ctx, h)
		return err
	}, opts...)
	return v, err
}

// Run runs body under the lock: acquire, build a fresh scope that binds the
// fencing token and the holder, call body, tear the scope down in reverse order
// while the token is valid, release. The last two always happen, also when body
// panics or ends its goroutine.
//
// body is a function that returns nothing or an error. Its parameters are dig
// parameters of any kind; the package documentation lists what a run binds.
// Values of the application reach it through [Share].
//
// The context that it can take ends with ctx, with the loss of the lease (its
// cause is then a [lockfx.LostError]) and with the stop of the application (cause
// [lockfx.ErrDisposed]).
//
// When nothing else failed, the error is body's own. Otherwise the errors are
// joined, body's first. A body that returned nil although its lease was lost gets
// the LostError. When the lease was not to be had it is a
// [lockfx.NotAcquiredError], and when the scope could not be built a
// [lockfx.ScopeError]; body did not run then. errors.Is finds each of the errors that
// are joined. The error does not say whether body returned nil: a caller who must know
// that the work was done, whatever became of the lease, has body set a variable, or
// return a value ([RunValue]), which comes back with any error.
func (l *Lock) Run(ctx context.Context, body any, opts ...RunOption) error {
	return l.runBody(ctx, body, reflect.Value{}, opts)
}

// RunValue is [Lock.Run] for a body that returns a T, or a T and an error. When
// the body did not run the value is zero; when it ran, it is the body's, whatever
// the error.
func RunValue[T any](ctx context.Context, l *Lock, body any, opts ...RunOption) (T, error) {
	var v T
	err := l.runBody(ctx, body, reflect.ValueOf(&v).Elem(), opts)
	return v, err
}

// runBody runs a body that is only known now. Its value goes to dst, if that is
// valid.
func (l *Lock) runBody(ctx context.Context, body any, dst reflect.Value, opts []RunOption) error {
	fn := reflect.ValueOf(body)
	if err := checkBody(fn, dst); err != nil {
		return l.scopeError("check the body", err)
	}
	run, err := l.settle(opts)
	if err != nil {
		return err
	}
	src, err := l.sourceFor(fn.Type())
	if err != nil {
		return err
	}
	condition, err := l.predicateOf(run)
	if err != nil {
		return err
	}
	return l.run(ctx, src, nil, run, condition, func(_ *lifecycle.Hold, args []reflect.Value) error {
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

var errNilBody = fmt.Errorf("%w: must be a function, and is nil", lockfx.ErrConfig)

// A body is called with what its parameters say, so its type must say all.
var errAnnotated = errors.New("must be a plain function, not what fx.Annotate returns: an fx.In struct tags parameters as well")

func isAnnotated(fn reflect.Value) bool { return fn.IsValid() && graph.IsAnnotated(fn.Interface()) }

// checkBody checks that fn is a function that returns a value for dst, if that is
// valid, and then nothing or an error.
func checkBody(fn, dst reflect.Value) error {
	switch {
	case !fn.IsValid() || fn.Kind() == reflect.Func && fn.IsNil():
		return errNilBody
	case isAnnotated(fn):
		return fmt.Errorf("%w: %w", lockfx.ErrConfig, errAnnotated)
	case fn.Kind() != reflect.Func:
		return fmt.Errorf("%w: must be a function, not of type %v", lockfx.ErrConfig, fn.Type())
	}
	t := fn.Type()
	n := t.NumOut()
	if n > 0 && t.Out(n-1) == graph.ErrorType {
		n--
	}
	switch {
	case dst.IsValid() && (n != 1 || t.Out(0) != dst.Type()):
		return fmt.Errorf("%w: %v must return %v, or %v and an error", lockfx.ErrConfig, t, dst.Type(), dst.Type())
	case !dst.IsValid() && n != 0:
		return fmt.Errorf("%w: %v must return nothing or an error; fxlock.RunValue takes a value", lockfx.ErrConfig, t)
	}
	return nil
}

// settle adds up the options of a run.
func (l *Lock) settle(opts []RunOption) (runSettings, error) {
	run, err := newRunSettings(opts)
	run = run.over(l.settings.run)
	if len(run.after) > 0 {
		err = errors.Join(err, fmt.Errorf("%w: fxlock.After is for a fxlock.Body, an OnStart or a Lead", lockfx.ErrConfig))
	}
	if err = errors.Join(err, run.check()); err != nil {
		return run, l.scopeError("check the options", err)
	}
	return run, nil
}

// mayStart refuses to start a body whose lease was lost, whose caller gave up or whose
// application stopped in the meantime: its holder would have no token any more.
func (l *Lock) mayStart(ctx context.Context, h *lifecycle.Hold) error {
	switch cause := context.Cause(ctx); {
	case cause != nil:
		return l.scopeError("start the body", cause)
	case !h.Held():
		return l.scopeError("start the body", lockfx.ErrLost)
	}
	return nil
}

func (l *Lock) scopeError(op string, err error) error {
	return &lockfx.ScopeError{Key: l.settings.key, Op: op, Err: err}
}
