package fxlock

import (
	"context"
	"fmt"
	"reflect"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock/internal/graph"
	"github.com/lockfx/lockfx/fxlock/internal/hooks"
	"github.com/lockfx/lockfx/fxlock/internal/plan"
	"github.com/lockfx/lockfx/internal/lifecycle"
	"github.com/lockfx/lockfx/internal/runscope"
)

// Scope is the scope of one run, for bodies that resolve by hand what they may or
// may not need. It reaches the values of the run, what [PerRun] builds and what
// [Share] shares. After the run it resolves nothing. It is safe for concurrent use.
type Scope struct {
	lock   *Lock
	ctx    context.Context // the run's: hooks of what is built later start under it
	inner  *runscope.Scope
	opened *hooks.Lifecycle
}

// Invoke calls fn, a function that returns nothing or an error, with dig
// parameters from the scope, and returns its error. If they can't be had the error
// is a [lockfx.ScopeError] and fn was not called.
//
// Constructors and hooks of the run must not call it: they take what they need as
// parameters. The hooks of what is built by hand start before fn is called. Once
// one of them failed, the scope starts nothing more and every later call fails.
func (s *Scope) Invoke(fn any) error {
	v := reflect.ValueOf(fn)
	if err := checkBody(v, reflect.Value{}); err != nil {
		return s.fault("invoke", err)
	}
	args, err := s.inner.Resolve(v.Type())
	if err != nil {
		return s.fault("resolve by hand", s.lock.settings.planner.Hinted(err))
	}
	if err := s.opened.Start(s.ctx); err != nil {
		return s.fault("start what was resolved by hand", err)
	}
	if out := v.Call(args); len(out) > 0 {
		err, _ = out[0].Interface().(error)
	}
	return err
}

// Get resolves a T from the scope, unnamed or under the given name. See
// [Scope.Invoke] for errors.
func Get[T any](s *Scope, name ...string) (T, error) {
	var v T
	if len(name) > 1 {
		return v, s.fault("resolve by hand", fmt.Errorf("%w: fxlock.Get takes one name at most, not %s", lockfx.ErrConfig, graph.Quoted(name)))
	}
	var p graph.Params
	field := p.Add(reflect.TypeFor[T](), graph.NameTag(name...))
	err := s.Invoke(p.Consumer(func(in reflect.Value) { reflect.ValueOf(&v).Elem().Set(in.Field(field)) }))
	return v, err
}

func (s *Scope) fault(op string, err error) error { return s.lock.scopeError(op, err) }

// run runs call under the lock with arguments from a fresh scope.
func (l *Lock) run(ctx context.Context, src *plan.Source, inputs []reflect.Value, run runSettings, condition *predicate, call func(*lifecycle.Hold, []reflect.Value) error) error {
	return l.under(ctx, run, condition, func(ctx context.Context, h *lifecycle.Hold) (err error) {
		s := &Scope{lock: l, ctx: ctx, opened: hooks.New(l.settings.teardownTimeout)}
		defer func() { err = join(err, s.close(h)) }()
		args, err := s.open(src, h, inputs)
		if err != nil {
			return err
		}
		h.Owe() // not before: nothing was done that should not be done again soon
		return call(h, args)
	})
}

// open builds the scope and returns the body's arguments. What was lost, cancelled
// or stopped in the meantime is an error.
func (s *Scope) open(src *plan.Source, h *lifecycle.Hold, inputs []reflect.Value) ([]reflect.Value, error) {
	var err error
	if s.inner, err = src.Open(s.values(src, h, inputs)); err != nil {
		return nil, s.fault("bind the run's values", err)
	}
	args, err := s.inner.Args()
	if err != nil {
		return nil, s.fault("build the body's parameters", err)
	}
	if err := s.opened.Start(s.ctx); err != nil {
		return nil, s.fault("start the run's values", err)
	}
	if err := s.lock.mayStart(s.ctx, h); err != nil {
		return nil, err
	}
	return args, nil
}

// values are what the run binds.
func (s *Scope) values(src *plan.Source, h *lifecycle.Hold, inputs []reflect.Value) plan.Values {
	v := plan.Values{
		Context: s.ctx, Token: lockfx.TokenFrom(s.ctx), Holder: h,
		Lifecycle: s.opened, Hand: s, Inputs: inputs,
	}
	if src.Logger != nil {
		v.Logger = src.Logger.With(keyField(h.Key()), fenceField(v.Token))
	}
	return v
}

// close tears the scope down, while the lease is still held and renewed. Nothing is
// resolved any more before the first hook stops, or its own would be forgotten. The hooks
// hear of a loss on the way; after an earlier one they have their time to clean up.
func (s *Scope) close(h *lifecycle.Hold) error {
	ctx, end := context.WithCancelCause(context.WithoutCancel(s.ctx))
	defer end(nil)
	if h.Held() {
		h.OnLost(func(loss *lockfx.LostError) { end(loss) })
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.lock.settings.teardownTimeout, s.lock.teardownOver)
	defer cancel()
	if s.inner != nil {
		s.inner.Close()
	}
	if err := s.opened.Stop(ctx); err != nil {
		return s.fault("tear the scope down", err)
	}
	return nil
}
