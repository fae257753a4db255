package plan

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock/internal/graph"
)

// ErrNilBody is the fault of a body that is nil.
var ErrNilBody = fmt.Errorf("%w: must be a function, and is nil", lockfx.ErrConfig)

// A body is called with what its parameters say, so its type must say all.
var errAnnotated = errors.New("must be a plain function, not what fx.Annotate returns: an fx.In struct tags parameters as well")

func isAnnotated(fn reflect.Value) bool { return fn.IsValid() && graph.IsAnnotated(fn.Interface()) }

// CheckFunc checks that fn is a function that returns a value of type result, if that is
// not nil, and then nothing or an error.
func CheckFunc(fn reflect.Value, result reflect.Type) error {
	switch {
	case !fn.IsValid() || fn.Kind() == reflect.Func && fn.IsNil():
		return ErrNilBody
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
	case result != nil && (n != 1 || t.Out(0) != result):
		return fmt.Errorf("%w: %v must return %v, or %v and an error", lockfx.ErrConfig, t, result, result)
	case result == nil && n != 0:
		return fmt.Errorf("%w: %v must return nothing or an error; fxlock.RunValue takes a value", lockfx.ErrConfig, t)
	}
	return nil
}

// CheckPredicate checks that fn is a function that returns a bool, or a bool and an error.
func CheckPredicate(fn reflect.Value) error {
	if isAnnotated(fn) {
		return errAnnotated
	}
	if !fn.IsValid() || fn.Kind() != reflect.Func || fn.IsNil() {
		return errors.New("must be a function")
	}
	t := fn.Type()
	if n := t.NumOut(); n == 0 || n > 2 || t.Out(0).Kind() != reflect.Bool || n == 2 && t.Out(1) != graph.ErrorType {
		return fmt.Errorf("%v must return a bool, or a bool and an error", t)
	}
	return nil
}

// CheckPair holds the func type f, that others call, and the function fn, that runs,
// against each other, and returns the inputs of f behind the context. results says what
// fn must return.
func CheckPair(f reflect.Type, fn reflect.Value, results string) (inputs []reflect.Type, err error) {
	if f.Kind() != reflect.Func || f.Name() == "" {
		return nil, fmt.Errorf("%v must be a func type that you define, such as: type Nightly func(context.Context) error", f)
	}
	if isAnnotated(fn) {
		return nil, errAnnotated
	}
	if fn.Kind() != reflect.Func || fn.IsNil() {
		return nil, errors.New("must have a function to run")
	}
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if f.NumIn() == 0 || f.In(0) != reflect.TypeFor[context.Context]() {
		fault("%v must take a context.Context first", f)
	}
	if f.IsVariadic() {
		fault("%v must not be variadic: take a slice", f)
	}
	if n := f.NumOut(); n == 0 || f.Out(n-1) != graph.ErrorType {
		fault("%v must return an error last", f)
	}
	seen := map[reflect.Type]bool{}
	for i := 1; i < f.NumIn(); i++ {
		in := f.In(i)
		if seen[in] || in == reflect.TypeFor[context.Context]() {
			fault("%v takes %v twice: inputs are distinguished by their types, so define a type for one of them", f, in)
		}
		seen[in] = true
		inputs = append(inputs, in)
	}
	if !sameResults(f, fn.Type()) {
		fault("%v must return %s", fn.Type(), results)
	}
	return inputs, errors.Join(faults...)
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

// ReturningError makes a function that returns nothing return an error.
func ReturningError(fn reflect.Value) reflect.Value {
	if fn.Kind() != reflect.Func || fn.IsNil() || fn.Type().NumOut() != 0 {
		return fn
	}
	in := make([]reflect.Type, fn.Type().NumIn())
	for i := range in {
		in[i] = fn.Type().In(i)
	}
	t := reflect.FuncOf(in, []reflect.Type{graph.ErrorType}, fn.Type().IsVariadic())
	return reflect.MakeFunc(t, func(args []reflect.Value) []reflect.Value {
		if t.IsVariadic() {
			fn.CallSlice(args)
		} else {
			fn.Call(args)
		}
		return []reflect.Value{reflect.Zero(graph.ErrorType)}
	})
}
