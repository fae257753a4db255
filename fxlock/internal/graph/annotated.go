package graph

import (
	"errors"
	"reflect"

	"go.uber.org/fx"
)

// What fx.Annotate returns is an unexported type of fx. Its exported method Build and its
// exported fields Target and FuncPtr open it. All are guarded: where a version of fx lacks
// one, the caller learns of it, or messages name a less helpful place.

// IsAnnotated reports whether v is what fx.Annotate returns.
func IsAnnotated(v any) bool {
	t := reflect.TypeOf(v)
	return t != nil && t.Kind() == reflect.Struct && t.PkgPath() == fxPath && reflect.PointerTo(t).Implements(builderType)
}

var (
	fxPath      = reflect.TypeFor[fx.Hook]().PkgPath()
	builderType = reflect.TypeFor[builder]()
)

type builder interface{ Build() (any, error) }

// Build returns the constructor that v, the result of fx.Annotate, stands for.
// Anything else is returned as it is. A constructor with lifecycle hooks opens a
// scope on a container of its own at each call, so a long-lived one leaks: call
// Build anew for each use.
func Build(v any) (any, error) {
	if err := Fault(v); err != nil {
		return nil, err
	}
	if !IsAnnotated(v) {
		return v, nil
	}
	p := reflect.New(reflect.TypeOf(v))
	p.Elem().Set(reflect.ValueOf(v))
	return p.Interface().(builder).Build()
}

// Target returns the constructor that was annotated, or v itself.
func Target(v any) any {
	if IsAnnotated(v) {
		if f := reflect.ValueOf(v).FieldByName("Target"); f.IsValid() && f.CanInterface() {
			return f.Interface()
		}
	}
	return v
}

// Fault returns the error that fx.Annotate hides in its result: a value whose
// pointer is an error.
func Fault(v any) error {
	t := reflect.TypeOf(v)
	if t == nil || t.Kind() != reflect.Struct || t.PkgPath() != fxPath {
		return nil
	}
	p := reflect.New(t)
	p.Elem().Set(reflect.ValueOf(v))
	if err, ok := p.Interface().(error); ok {
		return errors.New(err.Error())
	}
	return nil
}

// Located annotates constructor so that the errors of fx name the function at pc
// instead of the constructor, which may be made by reflection and have no name.
func Located(constructor any, pc uintptr, annotations ...fx.Annotation) any {
	v := fx.Annotate(constructor, annotations...)
	if !IsAnnotated(v) {
		return v
	}
	p := reflect.New(reflect.TypeOf(v)).Elem()
	p.Set(reflect.ValueOf(v))
	if f := p.FieldByName("FuncPtr"); f.IsValid() && f.CanSet() && f.Kind() == reflect.Uintptr {
		f.SetUint(uint64(pc))
	}
	return p.Interface()
}
