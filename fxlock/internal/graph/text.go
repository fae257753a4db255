package graph

import (
	"fmt"
	"path"
	"reflect"
	"runtime"
	"strconv"
	"strings"

	"go.uber.org/fx"
)

// CallSite returns the place that called the exported function which calls CallSite.
func CallSite() uintptr {
	var pcs [1]uintptr
	runtime.Callers(3, pcs[:])
	return pcs[0] - 1 // the call, not the instruction after it
}

// Place prints a place in the source for people: base name and line.
func Place(pc uintptr) string {
	f := runtime.FuncForPC(pc)
	if f == nil {
		return "unknown place"
	}
	file, line := f.FileLine(pc)
	return fmt.Sprintf("%s:%d", path.Base(file), line)
}

// EntryOf returns the entry of a function, or 0.
func EntryOf(fn any) uintptr {
	if v := reflect.ValueOf(fn); v.Kind() == reflect.Func && !v.IsNil() {
		return v.Pointer()
	}
	return 0
}

// FuncText names a function for people: its name without the path of its package.
func FuncText(fn any) string {
	if f := runtime.FuncForPC(EntryOf(fn)); f != nil {
		return path.Base(f.Name())
	}
	if s, ok := fn.(fmt.Stringer); ok {
		return s.String()
	}
	return fmt.Sprintf("%T", fn)
}

// CtorText names a constructor for people: a function, an fx.Annotated or what fx.Annotate
// returns.
func CtorText(ctor any) string {
	if a, ok := ctor.(fx.Annotated); ok {
		ctor = a.Target
	}
	return FuncText(Target(ctor))
}

// TypeName names a type so that two of them are told apart.
func TypeName(t reflect.Type) string { return t.PkgPath() + "." + t.Name() }

// IsMarker reports whether t is a named type that can stand for one thing in the graph.
func IsMarker(t reflect.Type) bool { return t.PkgPath() != "" && t.Kind() != reflect.Interface }

// Quoted prints names as the arguments of a call.
func Quoted(names []string) string {
	q := make([]string, len(names))
	for i, n := range names {
		q[i] = strconv.Quote(n)
	}
	return strings.Join(q, ", ")
}
