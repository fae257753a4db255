package graph

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/lockfx/lockfx"
)

// Returning makes ctor, a constructor or what fx.Annotate returns, a func(...) (want, error)
// with the same parameters but a variadic one. A nil result is an error of the call.
func Returning(ctor any, want reflect.Type) (reflect.Value, error) {
	built, err := Build(ctor)
	if err != nil {
		return reflect.Value{}, err
	}
	fn := reflect.ValueOf(built)
	if fn.Kind() != reflect.Func || fn.IsNil() {
		return reflect.Value{}, errors.New("must be a constructor")
	}
	t := fn.Type()
	ok := t.NumOut() == 1 || t.NumOut() == 2 && t.Out(1) == ErrorType
	if !ok || !t.Out(0).Implements(want) {
		return reflect.Value{}, fmt.Errorf("%v must return a %v and optionally an error; leave out fx.As and fx.ResultTags", t, want)
	}
	n := t.NumIn()
	if t.IsVariadic() {
		n--
	}
	in := make([]reflect.Type, n)
	for i := range in {
		in[i] = t.In(i)
	}
	return reflect.ValueOf(Constructor(in, want, func(args []reflect.Value) (reflect.Value, error) {
		out := fn.Call(args)
		if len(out) == 2 && !out[1].IsNil() {
			return reflect.Value{}, out[1].Interface().(error)
		}
		if IsNil(out[0].Interface()) {
			return reflect.Value{}, fmt.Errorf("%w: %v returned a nil %s", lockfx.ErrConfig, t, strings.ToLower(want.Name()))
		}
		return out[0].Convert(want), nil
	})), nil
}
