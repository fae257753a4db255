package runscope

import (
	"reflect"
	"strconv"
	"strings"

	"go.uber.org/dig"
)

// The functions here follow dig through shapes that dig has accepted: see
// [judge]. They have no opinion of their own on what is wrong.

var (
	inType    = reflect.TypeFor[dig.In]()
	outType   = reflect.TypeFor[dig.Out]()
	errorType = reflect.TypeFor[error]()
)

// positional returns the parameter types of fn that dig fills: it leaves the
// variadic one out.
func positional(fn reflect.Type) []reflect.Type {
	n := fn.NumIn()
	if fn.IsVariadic() {
		n--
	}
	types := make([]reflect.Type, n)
	for i := range types {
		types[i] = fn.In(i)
	}
	return types
}

// params returns what dig resolves for a function with these parameter types, in
// the order in which dig lists it.
func params(types []reflect.Type) []Leaf {
	var leaves []Leaf
	for _, t := range types {
		leaves = appendParam(leaves, t, "")
	}
	return leaves
}

func appendParam(leaves []Leaf, t reflect.Type, tags reflect.StructTag) []Leaf {
	if group, options, ok := groupOf(tags.Get("group")); ok {
		return append(leaves, Leaf{Key: Key{Type: t.Elem(), Group: group}, Soft: options["soft"]})
	}
	if !dig.IsIn(t) {
		optional, _ := strconv.ParseBool(tags.Get("optional"))
		return append(leaves, Leaf{Key: Key{Type: t, Name: tags.Get("name")}, Optional: optional})
	}
	for _, f := range fields(t, inType) {
		leaves = appendParam(leaves, f.Type, f.Tag)
	}
	return leaves
}

// results returns what dig takes from a constructor that is provided with the
// given name or group option.
func results(fn reflect.Type, name, group string) []Key {
	var keys []Key
	for i := range fn.NumOut() {
		if t := fn.Out(i); !t.Implements(errorType) {
			keys = appendResult(keys, t, name, group)
		}
	}
	return keys
}

func appendResult(keys []Key, t reflect.Type, name, tagged string) []Key {
	if group, options, ok := groupOf(tagged); ok {
		if options["flatten"] {
			t = t.Elem()
		}
		return append(keys, Key{Type: t, Group: group})
	}
	if !dig.IsOut(t) {
		return append(keys, Key{Type: t, Name: name})
	}
	for _, f := range fields(t, outType) {
		keys = appendResult(keys, f.Type, f.Tag.Get("name"), f.Tag.Get("group"))
	}
	return keys
}

// fields returns the fields of a dig.In or dig.Out struct that carry values.
// Unexported ones are only left where "ignore-unexported" drops them.
func fields(t, marker reflect.Type) []reflect.StructField {
	var carry []reflect.StructField
	for i := range t.NumField() {
		if f := t.Field(i); f.Type != marker && f.IsExported() {
			carry = append(carry, f)
		}
	}
	return carry
}

func groupOf(tagged string) (name string, options map[string]bool, ok bool) {
	if tagged == "" {
		return "", nil, false
	}
	parts := strings.Split(tagged, ",")
	options = make(map[string]bool, len(parts)-1)
	for _, option := range parts[1:] {
		options[option] = true
	}
	return parts[0], options, true
}
