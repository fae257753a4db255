package fxlock

import (
	"fmt"
	"reflect"
	"strings"

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
	return provideRule(site, nameRule(name))
}

func nameRule(name string) string {
	return fmt.Sprintf("a *fxlock.Lock called %s, of which there can be one: "+
		"give the second one another name; two locks may share a key by fxlock.WithKey", name)
}

// oneUnnamed is the rule for locks that are in the graph without a name, too.
func oneUnnamed(site uintptr) any {
	return provideRule(site, "an unnamed *fxlock.Lock, of which there can be one: "+
		"give every additional module fxlock.Named() and inject its lock by name")
}

// oneOfThatType is the rule for what is in the graph by the type of a body or a marker.
func oneOfThatType(b *body, t reflect.Type) any {
	option, _, _ := strings.Cut(b.text, "[")
	return provideRule(b.pc, typeRule(typeName(t), option))
}

func typeRule(name, option string) string {
	return fmt.Sprintf("a %s, of which there can be one: give the second %s a type of its own", name, option)
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
