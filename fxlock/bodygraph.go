package fxlock

import (
	"context"
	"fmt"
	"reflect"
	"strconv"

	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock/internal/annotated"
	"github.com/lockfx/lockfx/fxlock/internal/drain"
)

// boundBody is an F on its way into the graph. It goes through a key of its own
// because fx names the keys that it could not build: the name says which lock asks
// in vain, and what helps.
type boundBody struct{ f reflect.Value }

func (b *body) boundTag(lock string) string {
	return nameTag([]string{fmt.Sprintf("lock %s, %s.%s: fx.Provide what its body asks for, or give it to fxlock.PerRun",
		lock, b.f.PkgPath(), b.f.Name())})
}

// provide returns the constructors that put the F into the graph.
func (b *body) provide(s *settings) []any {
	tag := b.boundTag(s.name)
	var p paramObject
	boundField := p.add(reflect.TypeFor[boundBody](), tag)
	unwrap := makeFunc([]reflect.Type{p.structType()}, b.f, func(args []reflect.Value) (reflect.Value, error) {
		return args[0].Field(boundField).Interface().(boundBody).f, nil
	})
	return []any{
		annotated.Located(b.bind(s), b.pc, fx.ResultTags(tag)),
		annotated.Located(unwrap, b.pc),
	}
}

// bind returns the constructor that makes the F. It takes the lock and the
// application's lifecycle in one parameter object, and what fn needs in a second
// one, so that all of that is built before the hook is appended: fx then stops the
// F first.
func (b *body) bind(s *settings) any {
	var p paramObject
	lockField := p.add(reflect.TypeFor[*Lock](), nameTag([]string{s.name}))
	lifecycleField := p.add(reflect.TypeFor[fx.Lifecycle](), "")
	loggerField := 0
	if wanted := b.blueprint.logger; wanted != nil && s.logger == nil {
		loggerField = p.add(loggerType, `optional:"`+strconv.FormatBool(wanted.Optional)+`"`)
	}
	in := []reflect.Type{p.structType(), b.blueprint.In()}
	return makeFunc(in, reflect.TypeFor[boundBody](), func(args []reflect.Value) (reflect.Value, error) {
		l := args[0].Field(lockField).Interface().(*Lock)
		src := &source{Source: b.blueprint.Bind(args[1]), blueprint: b.blueprint, logger: s.logger}
		if loggerField != 0 {
			src.logger = args[0].Field(loggerField).Interface().(*zap.Logger)
		}
		gate := new(drain.Gate)
		args[0].Field(lifecycleField).Interface().(fx.Lifecycle).Append(b.drainHook(s.name, gate))
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
