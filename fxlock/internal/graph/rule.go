package graph

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"go.uber.org/fx"
)

// Rule is in the graph once for each thing that an application can have once. Nothing
// takes one. Where there are two, fx prints their name, which says what to do; the
// names of the things themselves say less, so rules come first.
type Rule struct{}

func provideRule(site uintptr, text string) any {
	return Located(func() Rule { return Rule{} }, site, fx.ResultTags(NameTag(text)))
}

// OneOfName is the rule for locks that are called name.
func OneOfName(site uintptr, name string) any { return provideRule(site, nameRule(name)) }

func nameRule(name string) string {
	return fmt.Sprintf("a *fxlock.Lock called %s, of which there can be one: "+
		"give the second one another name; two locks may share a key by fxlock.WithKey", name)
}

// OneUnnamed is the rule for locks that are in the graph without a name, too.
func OneUnnamed(site uintptr) any {
	return provideRule(site, "an unnamed *fxlock.Lock, of which there can be one: "+
		"give every additional module fxlock.Named() and inject its lock by name")
}

// OneNamespace is the rule for the namespace of an application.
func OneNamespace(site uintptr) any {
	return provideRule(site, "a fxlock.Namespace, of which an application can have one")
}

// OneOfType is the rule for what option puts into the graph by its type t, such as an F of
// fxlock.Body.
func OneOfType(site uintptr, t reflect.Type, option string) any {
	return provideRule(site, typeRule(TypeName(t), option))
}

func typeRule(name, option string) string {
	return fmt.Sprintf("a %s, of which there can be one: define another type for the second %s", name, option)
}

// OneLead is the rule for the fxlock.Lead of a lock. ordered are the markers of which it
// says whether it begins after their jobs.
func OneLead(site uintptr, lock string, ordered []reflect.Type) any {
	names := make([]string, len(ordered))
	for i, t := range ordered {
		names[i] = TypeName(t)
	}
	return provideRule(site, leadRule(lock, strings.Join(names, " ")))
}

func leadRule(lock, ordered string) string {
	return fmt.Sprintf("the fxlock.Lead of the lock %s, of which there can be one; it says whether it begins after these jobs: %s; and no other", lock, ordered)
}

// Rules are read back from the options of an application, as fx prints them.
var (
	lockOfName  = pattern(nameRule(anything))
	markerOfJob = pattern(typeRule(word, "fxlock.OnStart"))
	leadOfName  = pattern(leadRule(anything, anything))
)

// What stands in a rule for anything, and for anything without a space.
const anything, word = "<any>", "<word>"

func pattern(rule string) *regexp.Regexp {
	return regexp.MustCompile(strings.NewReplacer(anything, `(.*?)`, word, `(\S+?)`).Replace(regexp.QuoteMeta(rule)))
}

// LocksIn returns the names of the locks of an application. app is how fx prints its
// options.
func LocksIn(app string) []string {
	var names []string
	for _, lock := range lockOfName.FindAllStringSubmatch(app, -1) {
		names = append(names, lock[1])
	}
	return names
}

// Unordered calls f for each fxlock.Lead of an application that does not say whether it
// begins after a job of the start, with the job's marker as it is written. app is how fx
// prints the options.
func Unordered(app string, f func(lock, marker string)) {
	for _, lead := range leadOfName.FindAllStringSubmatch(app, -1) {
		for _, job := range markerOfJob.FindAllStringSubmatch(app, -1) {
			if slices.Contains(strings.Fields(lead[2]), job[1]) {
				continue
			}
			head, _, _ := strings.Cut(job[1], "[")
			f(lead[1], job[1][strings.LastIndex(head, "/")+1:])
		}
	}
}
