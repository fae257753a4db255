package plan

import (
	"context"
	"reflect"

	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/runscope"
)

// What every run can bind, in the order of keys; the inputs of a call and the logger
// follow.
const (
	boundContext = iota
	boundToken
	boundNamedToken
	boundHolder
	boundNamedHolder
	boundLifecycle
	boundHand
	boundInputs
)

func (p *Planner) keys(inputs []reflect.Type) []runscope.Key {
	token, holder := reflect.TypeFor[lockfx.Token](), reflect.TypeFor[lockfx.Holder]()
	keys := make([]runscope.Key, boundInputs, boundInputs+len(inputs)+1)
	keys[boundContext] = runscope.Key{Type: reflect.TypeFor[context.Context]()}
	keys[boundToken] = runscope.Key{Type: token}
	keys[boundNamedToken] = runscope.Key{Type: token, Name: p.TokenName}
	keys[boundHolder] = runscope.Key{Type: holder}
	keys[boundNamedHolder] = runscope.Key{Type: holder, Name: p.HolderName}
	keys[boundLifecycle] = runscope.Key{Type: reflect.TypeFor[fx.Lifecycle]()}
	keys[boundHand] = runscope.Key{Type: p.Hand}
	for _, in := range inputs {
		keys = append(keys, runscope.Key{Type: in})
	}
	return keys
}

// Source is a [Body] with the values of the application: what its runs start from.
type Source struct {
	body *Body
	from *runscope.Source
	// Logger is the application's, if the body asks for it and the application has one.
	Logger *zap.Logger
}

// Bind makes a Source from a value of [Body.In] and the application's logger, or nil.
func (b *Body) Bind(in reflect.Value, logger *zap.Logger) *Source {
	return b.source(b.Plan.Bind(in), logger)
}

func (b *Body) source(from *runscope.Source, logger *zap.Logger) *Source {
	if b.Logger == nil {
		logger = nil
	}
	return &Source{body: b, from: from, Logger: logger}
}

// SharedSource plans a body of type fn and takes from the application what is shared.
func (p *Planner) SharedSource(fn reflect.Type, shared map[runscope.Key]reflect.Value, logger *zap.Logger) (*Source, error) {
	b, err := p.Body(fn, nil)
	if err != nil {
		return nil, err
	}
	from, missing := b.BindShared(shared)
	if b.Logger != nil && logger == nil && !b.Logger.Optional {
		missing = append(missing, *b.Logger)
	}
	if missing != nil {
		return nil, p.missing(missing)
	}
	return b.source(from, logger), nil
}

// Values are what one run binds.
type Values struct {
	Context   context.Context
	Token     lockfx.Token
	Holder    lockfx.Holder
	Lifecycle fx.Lifecycle
	Hand      any             // the resolver by hand
	Inputs    []reflect.Value // of the call
	Logger    *zap.Logger     // of the run; nil where Source.Logger is
}

// Open makes the scope of one run. It calls no constructor yet.
func (s *Source) Open(run Values) (*runscope.Scope, error) {
	values := make([]reflect.Value, boundInputs+len(run.Inputs), boundInputs+len(run.Inputs)+1)
	bind := func(i int, v any) {
		if s.body.Wants(i) {
			values[i] = reflect.ValueOf(v)
		}
	}
	bind(boundContext, run.Context)
	bind(boundToken, run.Token)
	bind(boundNamedToken, run.Token)
	bind(boundHolder, run.Holder)
	bind(boundNamedHolder, run.Holder)
	bind(boundLifecycle, run.Lifecycle)
	bind(boundHand, run.Hand)
	copy(values[boundInputs:], run.Inputs)
	if s.body.Logger != nil {
		values = append(values, reflect.ValueOf(run.Logger))
	}
	return s.from.Open(values)
}
