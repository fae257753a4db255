package fxlock

import (
	"context"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock/internal/drain"
	"github.com/lockfx/lockfx/fxlock/internal/graph"
	"github.com/lockfx/lockfx/fxlock/internal/plan"
	"github.com/lockfx/lockfx/internal/lifecycle"
	"github.com/lockfx/lockfx/internal/runscope"
)

// readyBody is a body with all that its runs need, on its way into the graph. It
// has its own key because fx names the keys that it could not build: the
// name says whose body it is. fx shows it for a missing type and for a constructor that
// failed alike, so what helps against the one is said under its condition.
type readyBody struct {
	*body
	lock      *Lock
	src       *plan.Source
	condition *predicate
	calls     *drain.Calls
}

func (b *body) readyTag(lock string) string {
	return graph.NameTag(fmt.Sprintf("lock %s, %s; if a type is missing: fx.Provide it, or add its constructor to fxlock.PerRun",
		lock, b.title))
}

// provide returns the constructors that put the body, and what it is for, into the
// graph.
func (b *body) provide(s *settings) []any {
	var provided []any
	if t, tag := b.gives(s); tag == "" {
		option, _, _ := strings.Cut(b.text, "[")
		provided = append(provided, graph.OneOfType(b.pc, t, option))
	}
	provided = append(provided, graph.Located(b.bind(s), b.pc, fx.ResultTags(b.readyTag(s.name))))
	return append(provided, b.purpose.provide(b, s)...)
}

// fromReady returns a constructor of a value of type out that takes the ready body
// and the application's lifecycle.
func (b *body) fromReady(s *settings, out reflect.Type, f func(*readyBody, fx.Lifecycle) reflect.Value) any {
	var p graph.Params
	readyField := p.Add(reflect.TypeFor[*readyBody](), b.readyTag(s.name))
	lifecycleField := p.Add(reflect.TypeFor[fx.Lifecycle](), "")
	return graph.Constructor([]reflect.Type{p.Type()}, out, func(args []reflect.Value) (reflect.Value, error) {
		ready := args[0].Field(readyField).Interface().(*readyBody)
		return f(ready, args[0].Field(lifecycleField).Interface().(fx.Lifecycle)), nil
	})
}

// bind returns the constructor of the ready body. It takes the lock and the
// application's lifecycle in one parameter object, and what fn and the condition
// need in further ones, so that all of that is built before the hook is appended:
// fx then stops the body first.
func (b *body) bind(s *settings) any {
	var p graph.Params
	lockField := p.Add(reflect.TypeFor[*Lock](), graph.NameTag(s.name))
	lifecycleField := p.Add(reflect.TypeFor[fx.Lifecycle](), "")
	for _, marker := range b.run.after {
		p.Add(marker, "") // its hook comes before those of the body, then
	}
	loggerField := 0
	if wanted := b.scope.Logger; wanted != nil && s.logger == nil {
		loggerField = p.Add(reflect.TypeFor[*zap.Logger](), `optional:"`+strconv.FormatBool(wanted.Optional)+`"`)
	}
	in := []reflect.Type{p.Type(), b.scope.In()}
	if b.condition != nil {
		in = append(in, b.condition.In())
	}
	return graph.Constructor(in, reflect.TypeFor[*readyBody](), func(args []reflect.Value) (reflect.Value, error) {
		logger := s.logger
		if loggerField != 0 {
			logger = args[0].Field(loggerField).Interface().(*zap.Logger)
		}
		ready := &readyBody{
			body:  b,
			lock:  args[0].Field(lockField).Interface().(*Lock),
			src:   b.scope.Bind(args[1], logger),
			calls: new(drain.Calls),
		}
		if b.condition != nil {
			ready.condition = &predicate{ready.lock, b.run.condition.value.fn, b.condition.Bind(args[2])}
		}
		args[0].Field(lifecycleField).Interface().(fx.Lifecycle).Append(ready.drainHook())
		return reflect.ValueOf(ready), nil
	})
}

// drainHook stops the runs of the body before what they use is stopped.
func (b *readyBody) drainHook() fx.Hook {
	return fx.Hook{
		OnStart: func(context.Context) error {
			b.calls.Open()
			return nil
		},
		OnStop: func(ctx context.Context) error {
			ctx = b.lock.stopBegins(ctx)
			if b.calls.Close(ctx, lockfx.ErrDisposed) == nil {
				return nil
			}
			err := b.lock.outlived(ctx, "a call")
			if err != nil {
				err = fmt.Errorf("stop %v of lock %q: %w", b.f, b.lock.settings.name, err)
			}
			return err
		},
	}
}

// call runs the body once, with args as the F takes them, and returns what the F returns.
func (b *readyBody) call(args []reflect.Value, notify *callbacks) []reflect.Value {
	last := b.f.NumOut() - 1
	out := make([]reflect.Value, last+1)
	for i := range out {
		out[i] = reflect.Zero(b.f.Out(i))
	}
	ctx, leave, err := b.calls.Enter(args[0].Interface().(context.Context))
	if err != nil {
		err = fmt.Errorf("run %q: %w", b.lock.Key(), err)
	} else {
		defer leave()
		err = b.lock.run(ctx, &job{settings: b.run, condition: b.condition, source: b.src, inputs: args[1:], notify: notify},
			func(_ context.Context, h *lifecycle.Hold, args []reflect.Value) error {
				call := func() error {
					copy(out, b.fn.Call(args))
					err, _ := out[last].Interface().(error)
					return err
				}
				if notify != nil {
					notify.body(h, call)
					return nil
				}
				return call()
			})
	}
	out[last] = reflect.ValueOf(&err).Elem()
	return out
}

// callPlain is call for an F that takes the context alone and returns the error
// alone.
func (b *readyBody) callPlain(ctx context.Context, notify *callbacks) error {
	out := b.call([]reflect.Value{reflect.ValueOf(&ctx).Elem()}, notify)
	err, _ := out[0].Interface().(error)
	return err
}

func (b *body) gives(s *settings) (reflect.Type, string) { return b.purpose.gives(b, s) }

// force returns a function for fx.Invoke that takes what the body is for, or nil.
func (b *body) force(s *settings) any {
	if !b.purpose.forced() {
		return nil
	}
	var p graph.Params
	t, tag := b.gives(s)
	p.Add(t, tag)
	return graph.Located(p.Consumer(func(reflect.Value) {}), b.pc)
}

// purpose is what a body is for: it puts something into the graph that runs it.
type purpose interface {
	provide(*body, *settings) []any
	// gives returns the type of what is provided, and its tag.
	gives(*body, *settings) (reflect.Type, string)
	// forced reports whether it acts even if nothing takes it.
	forced() bool
}

// body is one F and what runs behind it.
type body struct {
	text      string // as it is written
	title     string // in messages of fx
	results   string // what fn must return
	f         reflect.Type
	fn        reflect.Value
	run       runSettings
	pc        uintptr
	purpose   purpose
	inputs    []reflect.Type // of f, behind the context
	scope     *plan.Body     // what fn needs
	condition *runscope.Plan // what run's condition needs, if it has one
}

// plainBody is a body for an F of ours, which takes the context and returns an error.
func plainBody[F any](title string, fn any, run runSettings, pc uintptr) *body {
	return &body{
		f: reflect.TypeFor[F](), fn: plan.ReturningError(reflect.ValueOf(fn)), run: run, pc: pc,
		title: "fxlock." + title, results: "nothing or an error",
	}
}

// plan checks b and plans its scope.
func (b *body) plan(s *settings, p *plan.Planner) {
	var err error
	if b.inputs, err = plan.CheckPair(b.f, b.fn, b.results); err != nil {
		s.faultErr(b.text, err)
		return
	}
	if b.scope, err = p.Body(b.fn.Type(), b.inputs); err != nil {
		s.faultErr(b.text, err)
		return
	}
	b.run = b.run.over(s.run)
	if err := b.run.check(); err != nil {
		s.faultErr(b.text, err)
	}
	if c := b.run.condition.value; c != nil {
		if b.condition, err = p.Condition(c.fn.Type(), b.inputs); err != nil {
			s.faultErr(b.text+": "+c.text, err)
		}
	}
	for i, in := range b.inputs {
		if !b.scope.WantsInput(i) {
			s.fault(b.text, fmt.Sprintf("takes no %v, which %v has as an input", in, b.f))
		}
	}
}
