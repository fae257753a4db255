package runscope

import (
	"errors"
	"fmt"
	"reflect"

	"go.uber.org/dig"
)

// dryRun has dig wire up a run without calling anything. It finds cycles, among
// constructors that are not reached as well, and any way in which this package
// and dig see the same functions differently.
func (p *Plan) dryRun(ctors []*ctor) error {
	var faults []error
	root := dig.New(dig.DryRun(true))
	scope := root.Scope("run")
	if p.mirror.fn != nil {
		faults = append(faults, root.Provide(reflect.Zero(p.mirror.fn).Interface()))
	}
	if p.runs.fn != nil {
		faults = append(faults, scope.Provide(reflect.Zero(p.runs.fn).Interface()))
	}
	for _, k := range ctors {
		if err := scope.Provide(k.sample, k.opts...); err != nil {
			faults = append(faults, &CtorError{Label: k.Label, Err: reason(err)})
		}
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	if err := scope.Invoke(reflect.Zero(p.collect).Interface()); err != nil {
		return fmt.Errorf("body: %w", rootCause(err))
	}
	return nil
}
