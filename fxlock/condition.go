package fxlock

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock/internal/graph"
	"github.com/lockfx/lockfx/internal/runscope"
)

// If makes a run ask fn whether its body is still wanted: once before it waits for
// the lock, and again when it has it. fn returns a bool, or a bool and an error.
// When it says no, the body does not run, and the error is a [lockfx.SkippedError], or nil
// with [SkipOn]; either way a [lockfx.EventSkipped] says so.
//
// fn takes dig parameters, of the application and the context alone: before the lock
// is acquired there is no token, and nothing is built for the run. Asking for what
// only a run binds is an error when the option is made. As for a body, values of the
// application reach the condition of a [Body] by themselves, and others by [Share].
//
// An error or a panic of fn ends the run, and the lock is given back.
func If(fn any) LockOrRunOption {
	c := &condition{text: "fxlock.If(" + graph.FuncText(fn) + ")", fn: reflect.ValueOf(fn)}
	return bothOption(c.text, func(r *runSettings) {
		if err := c.check(); err != nil {
			r.faults = append(r.faults, faultOf(c.text, err))
			return
		}
		r.condition.set(c)
	})
}

// condition is the function of an [If].
type condition struct {
	text string
	fn   reflect.Value
}

func (c *condition) check() error {
	if isAnnotated(c.fn) {
		return errAnnotated
	}
	if !c.fn.IsValid() || c.fn.Kind() != reflect.Func || c.fn.IsNil() {
		return errors.New("must be a function")
	}
	t := c.fn.Type()
	if n := t.NumOut(); n == 0 || n > 2 || t.Out(0).Kind() != reflect.Bool || n == 2 && t.Out(1) != graph.ErrorType {
		return fmt.Errorf("%v must return a bool, or a bool and an error", t)
	}
	return nil
}

// compileCondition plans what a condition, which is sound by itself, asks of the
// application. It refuses what only a run binds, or a call of an F with inputs.
func (s *settings) compileCondition(c *condition, inputs []reflect.Type) (*runscope.Plan, error) {
	t := c.fn.Type()
	plan, err := runscope.Compile(runscope.Spec{Body: t, Run: s.boundKeys(nil)[:boundContext+1]})
	if err != nil {
		return nil, err
	}
	inRun, err := runscope.Compile(runscope.Spec{Body: t, Run: s.boundKeys(inputs), Ctors: s.ctors, Hand: reflect.TypeFor[*Scope]()})
	if err != nil {
		return nil, err
	}
	var faults []error
	for _, leaf := range plan.Leaves() {
		if !slices.Contains(inRun.Leaves(), leaf) {
			faults = append(faults, fmt.Errorf("asks for %v, which only a run binds: it is asked before there is one", leaf.Key))
		}
	}
	return plan, errors.Join(faults...)
}

// compileOwnCondition checks the condition of the lock itself, which not every run
// has to reach.
func (s *settings) compileOwnCondition() {
	c := s.run.condition.value
	if c == nil {
		return
	}
	plan, err := s.compileCondition(c, nil)
	if err == nil && !s.module {
		err = s.inVain(slices.DeleteFunc(plan.Leaves(), func(l runscope.Leaf) bool { return l.Optional }))
	}
	if err != nil {
		s.faultErr(c.text, err)
		s.run.condition = choice[*condition]{} // or each body would tell it again
	}
}

// inVain says what a condition asks for in vain, and the cure; nil for nothing.
func (s *settings) inVain(leaves []runscope.Leaf) error {
	var faults []error
	for _, leaf := range leaves {
		cure := "only fxlock.Module knows an application"
		if s.module {
			cure = fmt.Sprintf("add %s to %s", shareText(leaf.Key), s.moduleText())
		}
		faults = append(faults, fmt.Errorf("%w: %v does not reach it: %s", lockfx.ErrConfig, leaf.Key, cure))
	}
	return errors.Join(faults...)
}

// asker is a condition with what it needs.
type asker interface {
	ask(context.Context) (bool, error)
}

// bound is an asker with values of the application.
type boundCondition struct {
	lock *Lock
	fn   reflect.Value
	from *runscope.Source
}

// ask calls the condition.
func (c *boundCondition) ask(ctx context.Context) (bool, error) {
	scope, err := c.from.Open([]reflect.Value{reflect.ValueOf(&ctx).Elem()})
	if err != nil {
		return false, c.lock.scopeError("ask the condition", err)
	}
	defer scope.Close()
	args, err := scope.Args()
	if err != nil {
		return false, c.lock.scopeError("ask the condition", err)
	}
	out := c.fn.Call(args)
	if len(out) == 2 && !out[1].IsNil() {
		return false, c.lock.scopeError("ask the condition", out[1].Interface().(error))
	}
	return out[0].Bool(), nil
}

// conditionFor returns the condition of a run that is only known now, ready to be
// asked, or nil when there is none. What it asks for must be shared.
func (l *Lock) conditionFor(run runSettings) (asker, error) {
	c := run.condition.value
	if c == nil {
		return nil, nil
	}
	if known, ok := l.conditions.Load(c); ok {
		return known.(asker), nil
	}
	plan, err := l.settings.compileCondition(c, nil)
	if err != nil {
		return nil, l.scopeError("check the options", faultOf(c.text, err))
	}
	src, missing := plan.BindShared(l.shared)
	if missing != nil {
		return nil, l.scopeError("check the options", faultOf(c.text, l.settings.inVain(missing)))
	}
	known := &boundCondition{l, c.fn, src}
	if c == l.settings.run.condition.value { // others may be made for each run
		l.conditions.Store(c, known)
	}
	return known, nil
}
