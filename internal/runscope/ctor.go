package runscope

import (
	"errors"
	"fmt"
	"path"
	"reflect"
	"runtime"
	"runtime/debug"

	"go.uber.org/dig"

	"github.com/lockfx/lockfx"
)

// ctor is a [Ctor] that was built once and looked at.
type ctor struct {
	Ctor
	sample any // what Build gave at compile time; it is never called
	needs  []Leaf
	gives  []Key
	opts   []dig.ProvideOption
}

// inspect builds c, which is number i of the Spec, and has dig judge it.
func inspect(i int, c Ctor) (*ctor, error) {
	fn, err := c.build()
	if err != nil {
		if c.Label == "" {
			c.Label = fmt.Sprintf("number %d", i+1)
		}
		return nil, &CtorError{Label: c.Label, Err: err}
	}
	k := &ctor{Ctor: c, sample: fn}
	if k.Label == "" {
		k.Label = nameOf(fn)
	}
	if c.Name != "" {
		k.opts = append(k.opts, dig.Name(c.Name))
	}
	if c.Group != "" {
		k.opts = append(k.opts, dig.Group(c.Group))
	}
	if err := judge(fn, k.opts...); err != nil {
		return nil, &CtorError{Label: k.Label, Err: err}
	}
	t := reflect.TypeOf(fn)
	k.needs = params(positional(t))
	k.gives = results(t, c.Name, c.Group)
	// Saves dig from looking the function up again in each run.
	k.opts = append(k.opts, dig.LocationForPC(reflect.ValueOf(fn).Pointer()))
	return k, nil
}

// build calls c.Build and contains its panics.
func (c Ctor) build() (fn any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &lockfx.PanicError{Value: p, Stack: debug.Stack()}
		}
	}()
	if c.Build == nil {
		return nil, errors.New("there is no function to build it")
	}
	fn, err = c.Build()
	if v := reflect.ValueOf(fn); err == nil && v.Kind() == reflect.Func && v.IsNil() {
		err = fmt.Errorf("the %v is nil", v.Type())
	}
	return fn, err
}

// rebuild gives the function for one run.
func (k *ctor) rebuild() (any, error) {
	fn, err := k.build()
	if got, want := reflect.TypeOf(fn), reflect.TypeOf(k.sample); err == nil && got != want {
		err = fmt.Errorf("it was a %v when it was checked and is a %v now", want, got)
	}
	if err != nil {
		return nil, &CtorError{Label: k.Label, Err: err}
	}
	return fn, nil
}

// nameOf returns the name of a function without the path of its package, or the
// type of what has no name of its own.
func nameOf(fn any) string {
	if v := reflect.ValueOf(fn); v.Kind() == reflect.Func {
		if name := path.Base(runtime.FuncForPC(v.Pointer()).Name()); name != "reflect.makeFuncStub" {
			return name
		}
	}
	return fmt.Sprintf("%T", fn)
}
