package fxlock

import (
	"fmt"
	"reflect"
	"strings"

	"go.uber.org/fx"

	"github.com/lockfx/lockfx/fxlock/internal/graph"
)

// Body puts an F into the graph: a function whose call runs fn under the lock. F is a func
// type that you define, so handlers take it without importing this package, and tests
// replace it with fx.Replace:
//
//	type Nightly func(context.Context) error
//
//	fxlock.Module("nightly", fxlock.Body[Nightly](func(ctx context.Context, fence lockfx.Token, db *DB) error {
//		return db.Rebuild(ctx, fence)
//	}))
//
// fn takes dig parameters of any kind. fx provides those of the application when F is
// built, so nothing unused is built; those of the run, and the values of [PerRun], are
// bound anew for each call. F takes a context.Context first and returns an error last. F
// may take further inputs, each of a different type; they are bound for that call, and fn
// must take them. F may also return values before the error; fn then returns them too. They
// are zero if fn did not run.
//
// F and fn are checked against each other when the option is made. A dependency of fn that
// the graph cannot provide is an error from fx.New as soon as something takes an F; use
// [Validate] for an F that nothing takes yet. See [Lock.Run] for the errors of a call.
func Body[F any](fn any, opts ...RunOption) Option {
	run, err := newRunSettings(opts)
	b := &body{f: reflect.TypeFor[F](), fn: reflect.ValueOf(fn), run: run, pc: graph.CallSite(), purpose: asF{}}
	b.title, b.results = b.f.PkgPath()+"."+b.f.Name(), fmt.Sprintf("what %v returns", b.f)
	b.text = bodyText(fmt.Sprintf("Body[%v]", b.f), fn, opts)
	return b.option(err)
}

// option adds the body to a module. err is the fault of its options.
func (b *body) option(err error) Option {
	return option{b.text, func(s *settings) {
		s.moduleOnly(b.text)
		if err != nil {
			s.faultErr(b.text, err)
		}
		own := *b // an option value may serve more than one lock
		s.bodies = append(s.bodies, &own)
	}}
}

func bodyText[O fmt.Stringer](name string, fn any, opts []O) string {
	return "fxlock." + name + "(" + strings.Join(append([]string{graph.FuncText(fn)}, texts(opts)...), ", ") + ")"
}

// texts prints options, also those that are nil.
func texts[O fmt.Stringer](opts []O) []string {
	t := make([]string, len(opts))
	for i, o := range opts {
		t[i] = fmt.Sprint(o)
	}
	return t
}

// asF provides the F itself.
type asF struct{}

func (asF) provide(b *body, s *settings) []any {
	return []any{graph.Located(b.fromReady(s, b.f, func(ready *readyBody, _ fx.Lifecycle) reflect.Value {
		return reflect.MakeFunc(b.f, func(args []reflect.Value) []reflect.Value { return ready.call(args, nil) })
	}), b.pc)}
}

func (asF) gives(b *body, _ *settings) (reflect.Type, string) { return b.f, "" }

func (asF) forced() bool { return false }
