package fxlock

import (
	"strings"

	"github.com/lockfx/lockfx/fxlock/internal/graph"
	"github.com/lockfx/lockfx/fxlock/internal/plan"
)

// PerRun adds constructors that are built once for each run, in the run's own
// scope, and only if the body reaches them. They take the token, the holder, the
// run's context, its fx.Lifecycle and anything that the body could take; what they
// give shadows the application's value of the same type for this run. Hooks that
// they append to the fx.Lifecycle start before the body and stop after it, in
// reverse order, while the token is still valid.
//
// Each is a plain constructor, an fx.Annotated or what fx.Annotate returns.
func PerRun(ctors ...any) Option {
	names := make([]string, len(ctors))
	for i, c := range ctors {
		names[i] = graph.CtorText(c)
	}
	text := "fxlock.PerRun(" + strings.Join(names, ", ") + ")"
	return option{text, func(s *settings) {
		for _, c := range ctors {
			ctor, err := plan.Ctor(c)
			if err != nil {
				s.faultErr(text, err)
				continue
			}
			s.ctors = append(s.ctors, ctor)
		}
	}}
}
