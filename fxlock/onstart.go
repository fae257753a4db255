package fxlock

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"go.uber.org/fx"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock/internal/annotated"
)

// OnStart runs fn under the lock while the application starts, such as a migration
// that one replica runs and the others wait for. It waits for the lock within the
// context of the start, unless [Wait] says otherwise. A fault fails the start with
// its cause. [If] tells whether the work is still needed: a run that it skips is no
// fault.
//
// M is a marker type of the application's own, and M is in the graph: what takes an
// M has its OnStart hooks after the work.
//
//	type Migrated struct{}
//
//	fxlock.Module("migrations", fxlock.OnStart[Migrated](migrate, fxlock.If(pending)))
//	func NewServer(lc fx.Lifecycle, _ Migrated) *Server // its OnStart follows migrate
//
// CONSTRUCTORS STILL RUN FIRST: fx builds everything before it starts anything, so
// the constructor of what takes an M must not rely on the work yet. The work runs
// even if nobody takes M.
//
// fn takes dig parameters of any kind, as for [Body], and returns nothing or an
// error.
func OnStart[M any](fn any, opts ...RunOption) Option {
	run, err := newRunSettings(append([]RunOption{WaitForever(), SkipIsOK()}, opts...))
	b := plainBody(fn, run, asOnStart{reflect.TypeFor[M]()}, callSite())
	b.f = reflect.TypeFor[onStartOf[M]]()
	b.text = bodyText(fmt.Sprintf("OnStart[%v]", reflect.TypeFor[M]()), fn, opts)
	if m := reflect.TypeFor[M](); m.Name() == "" || m.PkgPath() == "" {
		err = errors.Join(err, fmt.Errorf("%w: %v must be a marker type of your own, such as: type Migrated struct{}", lockfx.ErrConfig, m))
	}
	return b.option(err)
}

// onStartOf is the func type of the work behind an M.
type onStartOf[M any] func(context.Context) error

// plainBody is a body for a func type of ours, which takes the context and returns
// an error.
func plainBody(fn any, run runSettings, p purpose, pc uintptr) *body {
	return &body{fn: returningError(reflect.ValueOf(fn)), run: run, pc: pc, purpose: p}
}

// returningError makes a function that returns nothing return an error.
func returningError(fn reflect.Value) reflect.Value {
	if fn.Kind() != reflect.Func || fn.IsNil() || fn.Type().NumOut() != 0 {
		return fn
	}
	in := make([]reflect.Type, fn.Type().NumIn())
	for i := range in {
		in[i] = fn.Type().In(i)
	}
	t := reflect.FuncOf(in, []reflect.Type{errorType}, fn.Type().IsVariadic())
	return reflect.MakeFunc(t, func(args []reflect.Value) []reflect.Value {
		if t.IsVariadic() {
			fn.CallSlice(args)
		} else {
			fn.Call(args)
		}
		return []reflect.Value{reflect.Zero(errorType)}
	})
}

// asOnStart runs the body in a start hook, and provides the marker.
type asOnStart struct{ marker reflect.Type }

func (p asOnStart) provide(b *body, s *settings) []any {
	return []any{annotated.Located(b.fromBound(s, p.marker, func(bound *boundBody, lc fx.Lifecycle) reflect.Value {
		lc.Append(fx.StartHook(func(ctx context.Context) error {
			if err := bound.callPlain(ctx, nil); err != nil {
				return fmt.Errorf("%s of lock %q: %w", b.text, s.name, err)
			}
			return nil
		}))
		return reflect.Zero(p.marker)
	}), b.pc)}
}

func (p asOnStart) gives(*body, *settings) (reflect.Type, string) { return p.marker, "" }

func (asOnStart) forced() bool { return true }
