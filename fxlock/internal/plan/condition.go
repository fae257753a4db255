package plan

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/runscope"
)

// Condition plans what a predicate of type fn needs from the application. It is evaluated
// outside of a run, too, so it must not take what only a run binds, or a call with inputs.
func (p *Planner) Condition(fn reflect.Type, inputs []reflect.Type) (*runscope.Plan, error) {
	planned, err := runscope.Compile(runscope.Spec{Body: fn, Run: p.keys(nil)[:boundContext+1]})
	if err != nil {
		return nil, err
	}
	inRun, err := runscope.Compile(runscope.Spec{Body: fn, Run: p.keys(inputs), Ctors: p.Ctors, Hand: p.Hand})
	if err != nil {
		return nil, err
	}
	var faults []error
	for _, leaf := range planned.Leaves() {
		if !slices.Contains(inRun.Leaves(), leaf) {
			faults = append(faults, fmt.Errorf("takes %v, which only a run binds: the condition is evaluated before the run begins", leaf.Key))
		}
	}
	return planned, errors.Join(faults...)
}

// CheckCondition is [Planner.Condition] for a predicate of the lock itself, which no run
// may have to reach.
func (p *Planner) CheckCondition(fn reflect.Type) error {
	planned, err := p.Condition(fn, nil)
	if err != nil || p.Graph {
		return err
	}
	return p.missingInCondition(slices.DeleteFunc(planned.Leaves(), func(l runscope.Leaf) bool { return l.Optional }))
}

// SharedCondition plans a predicate of type fn and takes from the application what is
// shared.
func (p *Planner) SharedCondition(fn reflect.Type, shared map[runscope.Key]reflect.Value) (*runscope.Source, error) {
	planned, err := p.Condition(fn, nil)
	if err != nil {
		return nil, err
	}
	from, missing := planned.BindShared(shared)
	return from, p.missingInCondition(missing)
}

// missingInCondition says what does not reach a predicate, with a hint; nil for nothing.
func (p *Planner) missingInCondition(leaves []runscope.Leaf) error {
	var faults []error
	for _, leaf := range leaves {
		hint := "only fxlock.Module knows an application"
		if p.Graph {
			hint = fmt.Sprintf("add %s to %s", shareText(leaf.Key), p.Module)
		}
		faults = append(faults, fmt.Errorf("%w: %v does not reach it: %s", lockfx.ErrConfig, leaf.Key, hint))
	}
	return errors.Join(faults...)
}
