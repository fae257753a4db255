package fxlock

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

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

// sourceFor returns what runs of the body fn start from, where its type is met for
// the first time at run time.
func (l *Lock) sourceFor(fn reflect.Value) (*source, error) {
	if fn.Kind() != reflect.Func || fn.IsNil() {
		return nil, l.scopeError("check the body", fmt.Errorf("%w: must be a function, and is %v", lockfx.ErrConfig, fn))
	}
	t := fn.Type()
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

// notShared says what a body asks for in vain, and the cure.
func (s *settings) notShared(leaves []runscope.Leaf) error {
	faults := make([]error, len(leaves))
	for i, leaf := range leaves {
		faults[i] = fmt.Errorf("%w: %v does not reach the run: add %s to %s, or bind the body with fxlock.Body",
			lockfx.ErrConfig, leaf.Key, shareText(leaf.Key), s.moduleText())
	}
	return errors.Join(faults...)
}

// shareText prints the option that shares k.
func shareText(k runscope.Key) string {
	switch {
	case k.Group != "":
		return fmt.Sprintf("fxlock.ShareGroup[%v](%q)", k.Type, k.Group)
	case k.Name != "":
		return fmt.Sprintf("fxlock.Share[%v](%q)", k.Type, k.Name)
	}
	return fmt.Sprintf("fxlock.Share[%v]()", k.Type)
}

// Share makes a value of the application, unnamed or under the given name,
// available to bodies that are given to [Lock.Run], and by hand through [Scope].
// It is built with the lock, so it must not itself depend on the lock; a body that
// is bound with [Body] needs no Share.
func Share[T any](name ...string) Option {
	key := runscope.Key{Type: reflect.TypeFor[T](), Name: strings.Join(name, "")}
	text := shareText(key)
	return option{text, func(s *settings) {
		s.moduleOnly(text)
		if len(name) > 1 {
			s.fault(text, "takes one name at most")
		}
		s.shared = append(s.shared, key)
	}}
}

// ShareGroup is [Share] for a value group of the application whose elements are T.
func ShareGroup[T any](group string) Option {
	key := runscope.Key{Type: reflect.TypeFor[T](), Group: group}
	text := shareText(key)
	return option{text, func(s *settings) {
		s.moduleOnly(text)
		if group == "" {
			s.fault(text, "the group must not be empty")
		}
		s.shared = append(s.shared, key)
	}}
}
