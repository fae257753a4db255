package fxlock

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock/internal/graph"
	"github.com/lockfx/lockfx/fxlock/internal/hooks"
	"github.com/lockfx/lockfx/fxlock/internal/plan"
	"github.com/lockfx/lockfx/internal/lifecycle"
	"github.com/lockfx/lockfx/internal/runscope"
)

// Scope is the scope of one run, for bodies that decide at run time what they need. It
// resolves the values of the run, and the values of [PerRun] and [Share]. After the run it
// resolves nothing. It is safe for concurrent use.
type Scope struct {
	lock   *Lock
	ctx    context.Context // the run's: hooks of what is built later start under it
	inner  *runscope.Scope
	opened *hooks.Lifecycle
}

// Invoke calls fn, a function that returns nothing or an error, with dig parameters from
// the scope, and returns its error. If a parameter can't be resolved, the error is a
// [lockfx.ScopeError] and fn is not called.
//
// Constructors and hooks of the run must not call it: they take what they need as
// parameters. The hooks of what Invoke builds start before fn is called. Once
// one of them failed, the scope starts nothing more and every later call fails.
func (s *Scope) Invoke(fn any) error {
	v := reflect.ValueOf(fn)
	if err := plan.CheckFunc(v, nil); err != nil {
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

func (l *Lock) newScope(ctx context.Context) *Scope {
	return &Scope{lock: l, ctx: ctx, opened: hooks.New(l.settings.teardownTimeout)}
}

// open binds what the run gives, its token foremost, and returns the body's arguments.
func (s *Scope) open(src *plan.Source, h *lifecycle.Hold, token lockfx.Token, inputs []reflect.Value) ([]reflect.Value, error) {
	run := plan.Values{Context: s.ctx, Token: token, Holder: h, Lifecycle: s.opened, Hand: s, Inputs: inputs}
	if src.Logger != nil {
		run.Logger = src.Logger.With(keyField(h.Key()), fenceField(token))
	}
	var err error
	if s.inner, err = src.Open(run); err != nil {
		return nil, s.fault("bind the run's values", err)
	}
	args, err := s.inner.Args()
	if err != nil {
		return nil, s.fault("build the body's parameters", err)
	}
	return args, nil
}

// start starts the hooks of what was built.
func (s *Scope) start() error {
	if err := s.opened.Start(s.ctx); err != nil {
		return s.fault("start the run's values", err)
	}
	return nil
}

// close tears the scope down, while the lease is still held and renewed. Nothing is
// resolved any more before the first hook stops, or its own would be forgotten. The hooks
// hear of a loss on the way; after an earlier one they have their time to clean up. What does
// not end in time keeps the lease, which is not renewed any more.
func (s *Scope) close(h *lifecycle.Hold, token lockfx.Token) error {
	ctx, end := context.WithCancelCause(context.WithoutCancel(s.ctx))
	defer end(nil)
	if h.Held() {
		h.OnLost(func(loss *lockfx.LostError) { end(loss) })
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.lock.settings.teardownTimeout, s.lock.teardownOver)
	defer cancel()
	var left *sync.WaitGroup
	leave := func(ended <-chan struct{}) {
		if left == nil {
			left = new(sync.WaitGroup)
		}
		left.Go(func() { <-ended })
	}
	var err error
	if s.inner != nil {
		if resolving := s.inner.Close(); resolving != nil {
			if err = endsWithin(ctx, s.lock.settings.teardownTimeout/2, resolving); err != nil {
				leave(resolving)
			}
		}
	}
	stopping, failure := s.opened.Stop(ctx)
	if stopping != nil {
		leave(stopping)
	}
	if err = join(err, failure); left != nil {
		err = fmt.Errorf("%w; the lease of token %d is left to expire, and released when that has ended", err, token)
		h.Leave(left)
	}
	if err != nil {
		return s.fault("tear the scope down", err)
	}
	return nil
}

// endsWithin waits for what is resolved by hand, for limit at most.
func endsWithin(ctx context.Context, limit time.Duration, resolving <-chan struct{}) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w: %v, half of the teardown timeout, are over", lockfx.ErrTimeout, limit))
	defer cancel()
	select {
	case <-resolving:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("what was resolved by hand is still being built: %w", context.Cause(ctx))
	}
}

// sourceFor returns what runs of a body of type t start from, where the type is met
// for the first time at run time.
func (l *Lock) sourceFor(t reflect.Type) (*plan.Source, error) {
	known, ok := l.sources.Load(t)
	if !ok {
		src, err := l.settings.planner.SharedSource(t, l.shared, l.logger)
		if err != nil {
			known = l.scopeError("resolve the body's parameters", err)
		} else {
			known = src
		}
		l.sources.Store(t, known)
	}
	if err, bad := known.(error); bad {
		return nil, err
	}
	return known.(*plan.Source), nil
}

// PerRun adds constructors that are called once for each run, in the run's scope, and only
// if the body depends on them. They take the token, the holder, the run's context, its
// fx.Lifecycle and anything that the body could take. Their results shadow the application's
// values of the same type for this run. Hooks that they append to the fx.Lifecycle start
// before the body and stop after it, in reverse order, while the token is still valid.
//
// Each is a plain constructor, an fx.Annotated or the result of fx.Annotate.
func PerRun(ctors ...any) Option {
	names := make([]string, len(ctors))
	for i, c := range ctors {
		names[i] = graph.CtorText(c)
	}
	text := "fxlock.PerRun(" + strings.Join(names, ", ") + ")"
	return option{text, func(s *settings) {
		for _, c := range ctors {
			ctor, err := plan.Ctor(c)
			if err != nil {
				s.faultErr(text, err)
				continue
			}
			s.ctors = append(s.ctors, ctor)
		}
	}}
}

// Share makes a value of the application, unnamed or under the given name, available to
// bodies that are given to [Lock.Run], and to [Scope]. It is built with the lock, so it must
// not depend on the lock. A body that is bound with [Body] needs no Share.
func Share[T any](name ...string) Option {
	key := runscope.Key{Type: reflect.TypeFor[T]()}
	if len(name) > 0 {
		key.Name = name[0]
	}
	text := fmt.Sprintf("fxlock.Share[%v](%s)", key.Type, graph.Quoted(name))
	return option{text, func(s *settings) {
		s.moduleOnly(text)
		if len(name) > 1 {
			s.fault(text, "takes one name at most")
		}
		s.shared = append(s.shared, key)
	}}
}

// ShareGroup is [Share] for a value group of the application whose elements are T.
func ShareGroup[T any](group string) Option {
	key := runscope.Key{Type: reflect.TypeFor[T](), Group: group}
	text := fmt.Sprintf("fxlock.ShareGroup[%v](%q)", key.Type, group)
	return option{text, func(s *settings) {
		s.moduleOnly(text)
		if group == "" {
			s.fault(text, "the group must not be empty")
		}
		s.shared = append(s.shared, key)
	}}
}

// WithTokenName sets the name under which a run binds its token beside the unnamed
// one; the default is "lock:fence".
func WithTokenName(name string) Option {
	text := call("WithTokenName", name)
	return option{text, func(s *settings) { s.bindingName(&s.tokenName, text, name) }}
}

// WithHolderName sets the name under which a run binds its holder beside the
// unnamed one; the default is "lock:holder".
func WithHolderName(name string) Option {
	text := call("WithHolderName", name)
	return option{text, func(s *settings) { s.bindingName(&s.holderName, text, name) }}
}

func (s *settings) bindingName(to *string, text, name string) {
	if name == "" {
		s.fault(text, "must not be empty")
		return
	}
	*to = name
}
