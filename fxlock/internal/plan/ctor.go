package plan

import (
	"go.uber.org/fx"

	"github.com/lockfx/lockfx/fxlock/internal/graph"
	"github.com/lockfx/lockfx/internal/runscope"
)

// Ctor makes a constructor of a run from a plain one, an fx.Annotated, or what fx.Annotate
// returns.
func Ctor(c any) (runscope.Ctor, error) {
	ctor := runscope.Ctor{Label: graph.CtorText(c)}
	if a, ok := c.(fx.Annotated); ok {
		ctor.Name, ctor.Group, c = a.Name, a.Group, a.Target
	}
	ctor.Build = func() (any, error) { return graph.Build(c) }
	return ctor, graph.Fault(c)
}
