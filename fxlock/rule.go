package fxlock

import (
	"fmt"
	"reflect"

	"go.uber.org/fx"

	"github.com/lockfx/lockfx/fxlock/internal/annotated"
)

// rule is in the graph once for each thing that an application can have once. Nobody
// asks for one. Where there are two, fx prints their name, which says what to do; the
// names of the things themselves say less, so rules come first.
type rule struct{}

func provideRule(site uintptr, text string) any {
	return annotated.Located(func() rule { return rule{} }, site, fx.ResultTags(nameTag([]string{text})))
}

// oneOfThatName is the rule for locks that are called name.
func oneOfThatName(site uintptr, name string) any {
	return provideRule(site, fmt.Sprintf("a *fxlock.Lock called %s, of which there can be one: "+
		"call the other one otherwise; fxlock.WithKey sets its key", name))
}

// oneUnnamed is the rule for locks that are in the graph without a name, too.
func oneUnnamed(site uintptr) any {
	return provideRule(site, "an unnamed *fxlock.Lock, of which there can be one: "+
		"add fxlock.Named to all modules but one, and take their locks by name")
}

// passOn returns a constructor that gives the value of type t with the given tag. What
// it gives can be tagged otherwise.
func passOn(t reflect.Type, tag string) any {
	var p paramObject
	field := p.add(t, tag)
	return makeFunc([]reflect.Type{p.structType()}, t, func(args []reflect.Value) (reflect.Value, error) {
		return args[0].Field(field), nil
	})
}
