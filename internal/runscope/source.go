package runscope

import (
	"fmt"
	"reflect"

	"go.uber.org/dig"
)

// Source is a [Plan] together with the application's values. It may be used by
// many goroutines.
type Source struct {
	plan   *Plan
	mirror any          // the constructor that gives the leaves; nil when there are none
	absent map[Key]bool // optional leaves that the application does not have
}

var (
	deferred = []dig.Option{dig.DeferAcyclicVerification()}
	// Without a location dig looks each constructor up in the symbol table.
	here = []dig.ProvideOption{dig.LocationForPC(reflect.ValueOf((*bundle).constructor).Pointer())}
)

// Bind takes the application's values from in, which is a value of [Plan.In].
func (p *Plan) Bind(in reflect.Value) *Source {
	values := make([]reflect.Value, len(p.leaves))
	for i := range values {
		values[i] = in.Field(i + 1)
	}
	return p.source(values)
}

// BindShared takes the application's values from those at hand: a slice under a
// key with a group, a single value under any other. An optional leaf that is not
// among them is a zero value. If others are not, they are returned and the Source
// is nil.
func (p *Plan) BindShared(at map[Key]reflect.Value) (*Source, []Leaf) {
	var missing []Leaf
	values := make([]reflect.Value, len(p.leaves))
	for i, l := range p.leaves {
		v, ok := at[l.Key]
		if !ok && !l.Optional {
			missing = append(missing, l)
		}
		if !v.IsValid() {
			v = reflect.Zero(l.fieldType())
		}
		values[i] = v
	}
	if missing != nil {
		return nil, missing
	}
	return p.source(values), nil
}

func (p *Plan) source(values []reflect.Value) *Source {
	s := &Source{plan: p, absent: map[Key]bool{}}
	for i, l := range p.leaves {
		if l.Optional && isNil(values[i]) {
			s.absent[l.Key] = true
		}
	}
	if p.mirror.fn != nil {
		s.mirror = p.mirror.constructor(values)
	}
	return s
}

// isNil reports whether v is a nil: what dig gives for an optional value that is not
// there. The zero of any other type may as well be a value of the application.
func isNil(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Map, reflect.Slice, reflect.Func, reflect.Chan:
		return v.IsNil()
	default:
		return false
	}
}

// Open makes the scope of one run. run holds a value for each of Spec.Run; those
// that are not wanted may be the zero Value. No constructor is called yet.
func (s *Source) Open(run []reflect.Value) (*Scope, error) {
	p := s.plan
	for i, k := range p.run {
		if p.wants[i] && (i >= len(run) || !run[i].IsValid()) {
			return nil, fmt.Errorf("run value %v: is wanted and has no value", k)
		}
	}
	scope := &Scope{plan: p, absent: s.absent, root: dig.New(deferred...)}
	var err error
	if s.mirror != nil {
		err = scope.root.Provide(s.mirror, here...)
	}
	scope.child = scope.root.Scope("run")
	if p.runs.fn != nil && err == nil {
		err = scope.child.Provide(p.runs.constructor(run), here...)
	}
	for _, k := range p.ctors {
		if err == nil {
			err = scope.provide(k)
		}
	}
	if err != nil {
		return nil, err
	}
	return scope, nil
}
