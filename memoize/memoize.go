package memoize

import "context"

// Func returns a getter of what fn computes.
//
// The getter returns the value of the first run of fn that returned a nil error. Until
// then, calls that overlap share one run; its error goes to all of them as it is, and
// the next call runs fn again. A run's panic is raised in each caller as a
// [*PanicError]; a run that ended by [runtime.Goexit] gives them [ErrGoexit].
//
// A caller whose ctx ends leaves at once, with an error that matches ctx.Err() and the
// cause, and the others stay. The context of fn has the values of the caller that began
// the run, and is cancelled with the cause [ErrAbandoned] once every caller has left. A
// value that is kept already is returned even to a ctx that is over.
//
// The getter is safe for concurrent use. Once a value is kept, a call takes no lock and
// allocates nothing. A nil fn panics here, not at the first call.
func Func[T any](fn func(ctx context.Context) (T, error)) func(ctx context.Context) (T, error) {
	if fn == nil {
		panic("memoize: Func of a nil function")
	}
	g := &getter[T]{fn: fn, launch: func(fly func()) { go fly() }}
	return func(ctx context.Context) (T, error) {
		// Here rather than in a method, to keep it small enough for the inliner.
		if v := g.kept.Load(); v != nil {
			return *v, nil
		}
		return g.get(ctx)
	}
}

// Value returns a getter of what fn computes, for work that takes no context.
//
// It keeps the promises of [Func], except for those about contexts: fn runs on the
// goroutine of the caller that began the run, and nobody leaves before its end. If fn
// ends that goroutine by [runtime.Goexit], the goroutine does end; the other callers get
// [ErrGoexit].
func Value[T any](fn func() (T, error)) func() (T, error) {
	if fn == nil {
		panic("memoize: Value of a nil function")
	}
	g := &getter[T]{
		fn:     func(context.Context) (T, error) { return fn() },
		launch: func(fly func()) { fly() },
	}
	return func() (T, error) {
		if v := g.kept.Load(); v != nil {
			return *v, nil
		}
		return g.get(context.Background())
	}
}
