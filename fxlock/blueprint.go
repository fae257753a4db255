package fxlock

import (
	"context"
	"reflect"
	"slices"

	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/runscope"
)

// blueprint is the compiled plan of a body's scope.
type blueprint struct {
	*runscope.Plan
	logger *runscope.Leaf // how the application's logger is asked for, or nil
}

// source is a blueprint with the application's values: all that a run starts from.
type source struct {
	*runscope.Source
	blueprint *blueprint
	logger    *zap.Logger
}

// What every run can bind, in the order of boundKeys; the inputs of a body's func
// type and the logger follow.
const (
	boundContext = iota
	boundToken
	boundNamedToken
	boundHolder
	boundNamedHolder
	boundLifecycle
	boundScope
	boundInputs
)

var loggerType = reflect.TypeFor[*zap.Logger]()

func (s *settings) boundKeys(inputs []reflect.Type) []runscope.Key {
	token, holder := reflect.TypeFor[lockfx.Token](), reflect.TypeFor[lockfx.Holder]()
	keys := make([]runscope.Key, boundInputs, boundInputs+len(inputs)+1)
	keys[boundContext] = runscope.Key{Type: reflect.TypeFor[context.Context]()}
	keys[boundToken] = runscope.Key{Type: token}
	keys[boundNamedToken] = runscope.Key{Type: token, Name: s.tokenName}
	keys[boundHolder] = runscope.Key{Type: holder}
	keys[boundNamedHolder] = runscope.Key{Type: holder, Name: s.holderName}
	keys[boundLifecycle] = runscope.Key{Type: reflect.TypeFor[fx.Lifecycle]()}
	keys[boundScope] = runscope.Key{Type: reflect.TypeFor[*Scope]()}
	for _, in := range inputs {
		keys = append(keys, runscope.Key{Type: in})
	}
	return keys
}

// compile plans the scope of bodies of type body. A logger is bound by the run only
// if the application has one, so the plan is first made as if the run had none.
func (s *settings) compile(body reflect.Type, inputs []reflect.Type) (*blueprint, error) {
	spec := runscope.Spec{
		Body:   body,
		Run:    s.boundKeys(inputs),
		Ctors:  s.ctors,
		Shared: s.shared,
		Hand:   reflect.TypeFor[*Scope](),
	}
	plan, err := runscope.Compile(spec)
	if err != nil {
		return nil, err
	}
	for _, leaf := range plan.Leaves() {
		if leaf.Key != (runscope.Key{Type: loggerType}) {
			continue
		}
		spec.Run = append(spec.Run, leaf.Key)
		plan, err = runscope.Compile(spec)
		return &blueprint{Plan: plan, logger: &leaf}, err
	}
	return &blueprint{Plan: plan}, nil
}

// compileAll plans the scope of every body. What [PerRun] and [Share] add is
// planned by itself first, so that its faults are told once, and also when no body
// is bound.
func (s *settings) compileAll() {
	ctors, shared := s.ctors, s.shared
	all, err := s.compile(reflect.TypeFor[func(*Scope)](), nil)
	if err != nil {
		s.faultErr("the scope of a run", err)
		s.ctors, s.shared = nil, nil
	}
	s.compileOwnCondition()
	for _, b := range s.bodies {
		s.compileBody(b)
	}
	s.ctors, s.shared = ctors, shared
	if err == nil && len(s.bodies) == 0 {
		s.checkReach(all)
	}
}

// checkReach notes what constructors ask for in vain: without a [Body] only what is
// shared reaches a run.
func (s *settings) checkReach(all *blueprint) {
	var missing []runscope.Leaf
	for _, leaf := range all.Leaves() {
		if !leaf.Optional && !slices.Contains(s.shared, leaf.Key) {
			missing = append(missing, leaf)
		}
	}
	if missing != nil {
		s.faultErr("the scope of a run", s.notShared(missing))
	}
}

// sourceFor returns what runs of a body of type t start from, where the type is met
// for the first time at run time.
func (l *Lock) sourceFor(t reflect.Type) (*source, error) {
	known, ok := l.plans.Load(t)
	if !ok {
		src, err := l.newSource(t)
		if err != nil {
			known = l.scopeError("resolve the body's parameters", err)
		} else {
			known = src
		}
		l.plans.Store(t, known)
	}
	if err, bad := known.(error); bad {
		return nil, err
	}
	return known.(*source), nil
}

func (l *Lock) newSource(body reflect.Type) (*source, error) {
	bp, err := l.settings.compile(body, nil)
	if err != nil {
		return nil, err
	}
	src, missing := bp.BindShared(l.shared)
	if bp.logger != nil && l.logger == nil && !bp.logger.Optional {
		missing = append(missing, *bp.logger)
	}
	if missing != nil {
		return nil, l.settings.notShared(missing)
	}
	return &source{src, bp, l.logger}, nil
}
