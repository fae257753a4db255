package graph

import (
	"reflect"
	"strconv"

	"go.uber.org/fx"
)

// Params grows a struct that fx fills: an fx.In and a field for each value. The zero
// value is ready for use.
type Params struct{ fields []reflect.StructField }

// Add asks for a value of type t, with the tags of fx, and returns the index of
// its field.
func (p *Params) Add(t reflect.Type, tag string) int {
	if p.fields == nil {
		in := reflect.TypeFor[fx.In]()
		p.fields = []reflect.StructField{{Name: in.Name(), Type: in, Anonymous: true}}
	}
	i := len(p.fields)
	p.fields = append(p.fields, reflect.StructField{
		Name: "F" + strconv.Itoa(i), Type: t, Tag: reflect.StructTag(tag),
	})
	return i
}

// Type returns the type of the struct.
func (p *Params) Type() reflect.Type { return reflect.StructOf(p.fields) }

// Consumer returns a function that takes the struct and returns nothing.
func (p *Params) Consumer(f func(in reflect.Value)) any {
	t := reflect.FuncOf([]reflect.Type{p.Type()}, nil, false)
	return reflect.MakeFunc(t, func(args []reflect.Value) []reflect.Value {
		f(args[0])
		return nil
	}).Interface()
}

// NameTag returns the struct tag for the first name, or none.
func NameTag(name ...string) string {
	if len(name) == 0 || name[0] == "" {
		return ""
	}
	return "name:" + strconv.Quote(name[0])
}

// ErrorType is the type of errors.
var ErrorType = reflect.TypeFor[error]()

// Constructor makes a constructor from in to (out, error).
func Constructor(in []reflect.Type, out reflect.Type, f func(args []reflect.Value) (reflect.Value, error)) any {
	t := reflect.FuncOf(in, []reflect.Type{out, ErrorType}, false)
	return reflect.MakeFunc(t, func(args []reflect.Value) []reflect.Value {
		v, err := f(args)
		if err != nil {
			return []reflect.Value{reflect.Zero(out), reflect.ValueOf(&err).Elem()}
		}
		return []reflect.Value{v, reflect.Zero(ErrorType)}
	}).Interface()
}

// PassOn returns a constructor that gives the value of type t with the given tag. What
// it gives can be tagged otherwise.
func PassOn(t reflect.Type, tag string) any {
	var p Params
	field := p.Add(t, tag)
	return Constructor([]reflect.Type{p.Type()}, t, func(args []reflect.Value) (reflect.Value, error) {
		return args[0].Field(field), nil
	})
}

// IsNil reports whether v is nil, or holds a nil.
func IsNil(v any) bool {
	r := reflect.ValueOf(v)
	switch r.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Map, reflect.Func, reflect.Interface, reflect.Slice, reflect.Chan:
		return r.IsNil()
	default:
		return false
	}
}
