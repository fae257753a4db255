package fxlock

import (
	"fmt"
	"path"
	"reflect"
	"runtime"
	"strconv"
	"strings"

	"go.uber.org/fx"
)

// paramObject grows a struct that fx fills: an fx.In and a field for each value.
type paramObject struct{ fields []reflect.StructField }

// add asks for a value of type t, with the tags of fx, and returns the index of
// its field.
func (p *paramObject) add(t reflect.Type, tag string) int {
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

func (p *paramObject) structType() reflect.Type { return reflect.StructOf(p.fields) }

// nameTag returns the struct tag for the first name, or none.
func nameTag(name []string) string {
	if len(name) == 0 || name[0] == "" {
		return ""
	}
	return "name:" + strconv.Quote(name[0])
}

// makeFunc makes a constructor from in to (out, error).
func makeFunc(in []reflect.Type, out reflect.Type, f func(args []reflect.Value) (reflect.Value, error)) any {
	t := reflect.FuncOf(in, []reflect.Type{out, errorType}, false)
	return reflect.MakeFunc(t, func(args []reflect.Value) []reflect.Value {
		v, err := f(args)
		if err != nil {
			return []reflect.Value{reflect.Zero(out), reflect.ValueOf(&err).Elem()}
		}
		return []reflect.Value{v, reflect.Zero(errorType)}
	}).Interface()
}

// callSite returns the place that called the exported function of this package
// which calls callSite, for the messages of fx.
func callSite() uintptr {
	var pcs [1]uintptr
	runtime.Callers(3, pcs[:])
	return pcs[0] - 1 // the call, not the instruction after it
}

// pcOf returns the entry of a function, or 0.
func pcOf(fn any) uintptr {
	if v := reflect.ValueOf(fn); v.Kind() == reflect.Func && !v.IsNil() {
		return v.Pointer()
	}
	return 0
}

// funcText names a function for people: its name without the path of its package.
func funcText(fn any) string {
	if f := runtime.FuncForPC(pcOf(fn)); f != nil {
		return path.Base(f.Name())
	}
	if s, ok := fn.(fmt.Stringer); ok {
		return s.String()
	}
	return fmt.Sprintf("%T", fn)
}

// texts prints options, also those that are nil.
func texts[O fmt.Stringer](opts []O) []string {
	t := make([]string, len(opts))
	for i, o := range opts {
		t[i] = fmt.Sprint(o)
	}
	return t
}

func quoted(names []string) string {
	q := make([]string, len(names))
	for i, n := range names {
		q[i] = strconv.Quote(n)
	}
	return strings.Join(q, ", ")
}
