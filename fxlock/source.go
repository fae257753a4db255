package fxlock

import (
	"reflect"

	"github.com/lockfx/lockfx/fxlock/internal/plan"
)

// sourceFor returns what runs of a body of type t start from, where the type is met
// for the first time at run time.
func (l *Lock) sourceFor(t reflect.Type) (*plan.Source, error) {
	known, ok := l.sources.Load(t)
	if !ok {
		src, err := l.settings.planner.SharedSource(t, l.shared, l.logger)
		if err != nil {
			known = l.scopeError("resolve the body's parameters", err)
		} else {
			known = src
		}
		l.sources.Store(t, known)
	}
	if err, bad := known.(error); bad {
		return nil, err
	}
	return known.(*plan.Source), nil
}
