package runscope

import "reflect"

// Spec says what a run's scope is made of.
type Spec struct {
	// Body is the type of the function whose parameters are resolved. Its results
	// are the caller's business.
	Body reflect.Type
	// Run are the keys that the run itself binds, such as context.Context. They may
	// have names, not groups. They shadow the application's values, which are then
	// never asked for.
	Run []Key
	// Ctors are built once per run, as far as they are reached. A single value of
	// theirs shadows the application's; a group is the values of both.
	Ctors []Ctor
	// Shared are further values of the application, to be had by hand.
	Shared []Key
	// Hand is the type of the by-hand resolver, one of Run, or nil. Where it is
	// reached everything is bound: all of Run, Ctors and Shared.
	Hand reflect.Type
}

// Ctor is a constructor that is built once per run, in the child scope, if it is
// reached.
type Ctor struct {
	// Build gives the function. It is called anew for each run, since some
	// functions can't be shared (fx.Annotate with hooks opens a scope on its
	// container), and must always give the same type.
	Build func() (any, error)
	// Name and Group are passed to dig.Name and dig.Group when they are not empty.
	Name, Group string
	// Label is what messages call it; the name of the function if it is empty.
	Label string
}
