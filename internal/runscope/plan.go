package runscope

import (
	"reflect"
	"slices"
)

// Plan is a [Spec] that was checked and worked out. It does not change and may be
// used by many goroutines.
type Plan struct {
	run    []Key
	wants  []bool       // which of run are reached
	ctors  []*ctor      // those that are reached
	leaves []Leaf       // what must come from the application
	bound  map[Key]bool // what a function can ask for by hand
	hand   bool         // the by-hand resolver is reached
	soft   bool         // a soft group is reached

	in      reflect.Type // asks for the leaves
	mirror  bundle       // gives the leaves
	runs    bundle       // gives the wanted run values
	collect reflect.Type // takes the body's arguments
	prime   any          // a function that has the mirror built; nil without leaves
}

// lay makes all types that runs are built from, once.
func (p *Plan) lay(body []reflect.Type) {
	keys := make([]Key, len(p.leaves))
	for i, l := range p.leaves {
		keys[i] = l.Key
	}
	p.in = inStruct(p.leaves)
	p.mirror = newBundle(keys, all)
	p.runs = newBundle(p.run, p.Wants)
	p.collect = reflect.FuncOf(body, nil, false)
	if len(keys) > 0 {
		primer := inStruct([]Leaf{{Key: keys[0]}})
		p.prime = reflect.MakeFunc(reflect.FuncOf([]reflect.Type{primer}, nil, false),
			func([]reflect.Value) []reflect.Value { return nil }).Interface()
	}
}

// Leaves returns exactly what is needed from the application, in an order that
// is the same for the same Spec.
func (p *Plan) Leaves() []Leaf { return slices.Clone(p.leaves) }

// In returns a dig.In struct that asks for the leaves: the type of the parameter
// of a constructor that gathers them from the application.
func (p *Plan) In() reflect.Type { return p.in }

// Wants reports whether Spec.Run[i] is reached. The values of the others need not
// be made.
func (p *Plan) Wants(i int) bool { return p.wants[i] }
