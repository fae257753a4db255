package fxlock

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/lockfx/lockfx"
)

// SkipIfHeld returns f with contention turned into nil: what f returns is then
// zero. It is for schedulers, to which a job that another replica runs is no fault,
// also if f waited for the lock in vain ([Wait]). An outage of the store still is one,
// and so is a wait that was cancelled, or ended by the stop of the application, and a
// run inside of a run of the same lock. f is a func type whose last result is an error,
// such as one that [Body] made; SkipIfHeld panics for any other, and for nil.
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
	if v.IsNil() {
		panic(fmt.Sprintf("fxlock.SkipIfHeld: the %v must not be nil", t))
	}
	call := v.Call
	if t.IsVariadic() {
		call = v.CallSlice
	}
	return reflect.MakeFunc(t, func(args []reflect.Value) []reflect.Value {
		out := call(args)
		err, _ := out[len(out)-1].Interface().(error)
		if !contention(err) {
			return out
		}
		for i := range out {
			out[i] = reflect.Zero(t.Out(i))
		}
		return out
	}).Interface().(F)
}

// contention reports whether somebody else has the lock, and nothing else is wrong.
func contention(err error) bool {
	var refusal *lockfx.NotAcquiredError
	nested := errors.As(err, &refusal) && refusal.Nested
	return errors.Is(err, lockfx.ErrNotAcquired) && !nested && !errors.Is(err, context.Canceled) && !errors.Is(err, lockfx.ErrDisposed)
}
