package fxlock

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/lockfx/lockfx"
)

// SkipIfHeld returns f with contention turned into nil: what f returns is then
// zero. It is for schedulers, to which a job that another replica runs is no fault.
// An outage of the store still is one. f is a func type whose last result is an
// error, such as one that [Body] made; SkipIfHeld panics for any other.
//
// An error of the body itself that matches [lockfx.ErrNotAcquired], say from another
// lock that it takes, is turned into nil as well: wrap it in an error of your own if
// it matters.
func SkipIfHeld[F any](f F) F {
	v := reflect.ValueOf(f)
	t := reflect.TypeFor[F]()
	if t.Kind() != reflect.Func || t.NumOut() == 0 || t.Out(t.NumOut()-1) != errorType {
		panic(fmt.Sprintf("fxlock.SkipIfHeld: %v must be a func type that returns an error last", t))
	}
	return reflect.MakeFunc(t, func(args []reflect.Value) []reflect.Value {
		var out []reflect.Value
		if t.IsVariadic() {
			out = v.CallSlice(args)
		} else {
			out = v.Call(args)
		}
		err, _ := out[len(out)-1].Interface().(error)
		if !errors.Is(err, lockfx.ErrNotAcquired) {
			return out
		}
		for i := range out {
			out[i] = reflect.Zero(t.Out(i))
		}
		return out
	}).Interface().(F)
}
