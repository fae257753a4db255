package plan

import (
	"reflect"
	"slices"

	"go.uber.org/zap"

	"github.com/lockfx/lockfx/internal/runscope"
)

// Planner is what the options of a lock say about the scope of its runs. It is safe for
// concurrent use once it is made.
type Planner struct {
	Module     string          // how messages call the lock: fxlock.Module("nightly")
	Graph      bool            // there is the graph of an application
	Own        []runscope.Key  // under which the lock itself is in the graph
	TokenName  string          // of the token that is bound beside the unnamed one
	HolderName string          // of the holder that is bound beside the unnamed one
	Hand       reflect.Type    // of the resolver by hand
	Ctors      []runscope.Ctor // built once for each run
	Shared     []runscope.Key  // values of the application for bodies that are met at run time
}

// Body is the plan of one body.
type Body struct {
	*runscope.Plan
	// Logger is how the body asks for the application's logger, or nil. The run binds
	// it, if the application has one.
	Logger *runscope.Leaf
}

var loggerType = reflect.TypeFor[*zap.Logger]()

// Body plans the scope of a function of type fn. inputs are the types that a call of it
// gives beside what each run binds.
func (p *Planner) Body(fn reflect.Type, inputs []reflect.Type) (*Body, error) {
	spec := runscope.Spec{Body: fn, Run: p.keys(inputs), Ctors: p.Ctors, Shared: p.Shared, Hand: p.Hand}
	planned, err := runscope.Compile(spec) // as if the run had no logger
	if err != nil {
		return nil, err
	}
	for _, leaf := range planned.Leaves() {
		if leaf.Key != (runscope.Key{Type: loggerType}) {
			continue
		}
		spec.Run = append(spec.Run, leaf.Key)
		planned, err = runscope.Compile(spec)
		return &Body{Plan: planned, Logger: &leaf}, err
	}
	return &Body{Plan: planned}, nil
}

// WantsInput reports whether the body takes input i.
func (b *Body) WantsInput(i int) bool { return b.Wants(boundInputs + i) }

// Check plans what constructors and shared values add, by themselves. unreached says which
// parameters of constructors are not shared: a fault where nothing else of the application
// reaches a run.
func (p *Planner) Check() (unreached, err error) {
	all, err := p.Body(reflect.FuncOf([]reflect.Type{p.Hand}, nil, false), nil)
	if err != nil {
		return nil, err
	}
	return p.missing(slices.DeleteFunc(all.Leaves(), func(l runscope.Leaf) bool {
		return l.Optional || slices.Contains(p.Shared, l.Key)
	})), nil
}

// WithoutAdditions returns a Planner without constructors and shared values.
func (p *Planner) WithoutAdditions() *Planner {
	bare := *p
	bare.Ctors, bare.Shared = nil, nil
	return &bare
}
