package fxlock

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"

	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock/internal/annotated"
	"github.com/lockfx/lockfx/fxlock/internal/drain"
)

// Body puts an F into the graph: a function whose call runs fn under the lock. F
// is a func type of the application's own, so handlers take it without importing
// this package, and tests replace it with fx.Replace:
//
//	type Nightly func(context.Context) error
//
//	fxlock.Module("nightly", fxlock.Body[Nightly](func(ctx context.Context, fence lockfx.Token, db *DB) error {
//		return db.Rebuild(ctx, fence)
//	}))
//
// fn takes dig parameters of any kind. Those of the application are asked from fx
// when F is built, so nothing unused is built; those of the run, and what [PerRun]
// gives, are bound anew for each call. F takes a context.Context first and returns
// an error last. F may take further inputs, each of a type of its own, which are
// bound for that call and which fn must take; and it may return values before the
// error, which fn returns too. They are zero when fn did not run.
//
// F and fn are checked against each other when the option is made. What fn asks of
// the graph in vain is an error of fx.New as soon as somebody takes an F; use
// [Validate] for an F that nobody takes yet. See [Lock.Run] for the errors of a
// call.
func Body[F any](fn any, opts ...RunOption) Option {
	b := &body{f: reflect.TypeFor[F](), fn: reflect.ValueOf(fn), run: settle(opts), pc: callSite()}
	b.text = fmt.Sprintf("fxlock.Body[%v](%s)", b.f, funcText(fn))
	return option{b.text, func(s *settings) {
		s.moduleOnly(b.text)
		own := *b // an option value may serve more than one lock
		s.bodies = append(s.bodies, &own)
	}}
}

// body is one F and what runs behind it.
type body struct {
	text      string
	f         reflect.Type
	fn        reflect.Value
	run       runSettings
	pc        uintptr
	inputs    []reflect.Type // of f, behind the context
	blueprint *blueprint
}

// compileBodies checks and plans all bodies.
func (s *settings) compileBodies() {
	for _, b := range s.bodies {
		if err := b.check(); err != nil {
			s.faultErr(b.text, err)
			continue
		}
		var err error
		if b.blueprint, err = s.compile(b.fn.Type(), b.inputs); err != nil {
			s.faultErr(b.text, err)
			continue
		}
		for i, in := range b.inputs {
			if !b.blueprint.Wants(boundInputs + i) {
				s.fault(b.text, fmt.Sprintf("takes no %v, which %v has as an input", in, b.f))
			}
		}
	}
}

// check holds f and fn against each other.
func (b *body) check() error {
	if b.f.Kind() != reflect.Func || b.f.Name() == "" {
		return fmt.Errorf("%v must be a func type of your own, such as: type Nightly func(context.Context) error", b.f)
	}
	if b.fn.Kind() != reflect.Func || b.fn.IsNil() {
		return errors.New("must have a function to run")
	}
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if b.f.NumIn() == 0 || b.f.In(0) != reflect.TypeFor[context.Context]() {
		fault("%v must take a context.Context first", b.f)
	}
	if b.f.IsVariadic() {
		fault("%v must not be variadic: take a slice", b.f)
	}
	if n := b.f.NumOut(); n == 0 || b.f.Out(n-1) != errorType {
		fault("%v must return an error last", b.f)
	}
	seen := map[reflect.Type]bool{}
	for i := 1; i < b.f.NumIn(); i++ {
		in := b.f.In(i)
		if seen[in] || in == reflect.TypeFor[context.Context]() {
			fault("%v takes %v twice: inputs are told apart by their types, so give one a type of its own", b.f, in)
		}
		seen[in] = true
		b.inputs = append(b.inputs, in)
	}
	if !sameResults(b.f, b.fn.Type()) {
		fault("%v must return what %v returns", b.fn.Type(), b.f)
	}
	return errors.Join(faults...)
}

func sameResults(a, b reflect.Type) bool {
	if a.NumOut() != b.NumOut() {
		return false
	}
	for i := range a.NumOut() {
		if a.Out(i) != b.Out(i) {
			return false
		}
	}
	return true
}

// boundBody is an F on its way into the graph. It goes through a key of its own
// because fx names the keys that it could not build: the name says which lock asks
// in vain, and what helps.
type boundBody struct{ f reflect.Value }

func (b *body) boundTag(lock string) string {
	return nameTag([]string{fmt.Sprintf("lock %s, %s.%s: fx.Provide what its body asks for, or give it to fxlock.PerRun",
		lock, b.f.PkgPath(), b.f.Name())})
}

// provide returns the constructors that put the F into the graph.
func (b *body) provide(lock string) []any {
	tag := b.boundTag(lock)
	var p paramObject
	boundField := p.add(reflect.TypeFor[boundBody](), tag)
	unwrap := makeFunc([]reflect.Type{p.structType()}, b.f, func(args []reflect.Value) (reflect.Value, error) {
		return args[0].Field(boundField).Interface().(boundBody).f, nil
	})
	return []any{
		annotated.Located(b.bind(lock), b.pc, fx.ResultTags(tag)),
		annotated.Located(unwrap, b.pc),
	}
}

// bind returns the constructor that makes the F. It takes the lock and the
// application's lifecycle in one parameter object, and what fn needs in a second
// one, so that all of that is built before the hook is appended: fx then stops the
// F first.
func (b *body) bind(lock string) any {
	var p paramObject
	lockField := p.add(reflect.TypeFor[*Lock](), nameTag([]string{lock}))
	lifecycleField := p.add(reflect.TypeFor[fx.Lifecycle](), "")
	loggerField := 0
	if wanted := b.blueprint.logger; wanted != nil {
		loggerField = p.add(loggerType, `optional:"`+strconv.FormatBool(wanted.Optional)+`"`)
	}
	in := []reflect.Type{p.structType(), b.blueprint.In()}
	return makeFunc(in, reflect.TypeFor[boundBody](), func(args []reflect.Value) (reflect.Value, error) {
		l := args[0].Field(lockField).Interface().(*Lock)
		src := &source{Source: b.blueprint.Bind(args[1]), blueprint: b.blueprint}
		if loggerField != 0 {
			src.logger = args[0].Field(loggerField).Interface().(*zap.Logger)
		}
		gate := new(drain.Gate)
		args[0].Field(lifecycleField).Interface().(fx.Lifecycle).Append(b.drainHook(lock, gate))
		f := reflect.MakeFunc(b.f, func(args []reflect.Value) []reflect.Value { return b.call(l, src, gate, args) })
		return reflect.ValueOf(boundBody{f}), nil
	})
}

// drainHook stops the calls of the F before what they use is stopped.
func (b *body) drainHook(lock string, gate *drain.Gate) fx.Hook {
	return fx.Hook{
		OnStart: func(context.Context) error {
			gate.Open()
			return nil
		},
		OnStop: func(ctx context.Context) error {
			if err := gate.Close(ctx, lockfx.ErrDisposed); err != nil {
				return fmt.Errorf("stop %v of lock %q: it still runs: %w", b.f, lock, err)
			}
			return nil
		},
	}
}

// call is a call of the F.
func (b *body) call(l *Lock, src *source, gate *drain.Gate, args []reflect.Value) []reflect.Value {
	last := b.f.NumOut() - 1
	out := make([]reflect.Value, last+1)
	for i := range out {
		out[i] = reflect.Zero(b.f.Out(i))
	}
	ctx, leave, err := gate.Enter(args[0].Interface().(context.Context))
	if err != nil {
		err = fmt.Errorf("run %q: %w", l.Key(), err)
	} else {
		defer leave()
		err = l.run(ctx, src, args[1:], b.run, func(args []reflect.Value) error {
			copy(out, b.fn.Call(args))
			err, _ := out[last].Interface().(error)
			return err
		})
	}
	out[last] = reflect.ValueOf(&err).Elem()
	return out
}
