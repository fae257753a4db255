package fxlock

import (
	"fmt"
	"reflect"

	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock/internal/graph"
	"github.com/lockfx/lockfx/internal/runscope"
)

// Module puts a lock into an fx application: a *Lock as `name:"<name>"` and,
// unless [Named] is given, unnamed too, and an F for each [Body]. The key is the
// name and the ttl 30 s, or 5 s where there is an [OnStart], unless options say otherwise.
//
// The store is what [WithStore], [StoreFrom] or [StoreFromGraph] say. Without any
// of them it is a fresh memory store, and a warning says that other processes are
// not excluded.
//
// The application's stop disposes of the lock after all that was built with it has
// stopped; see [Lock.Dispose]. Nothing is acquired while the application is built.
// Faults of the options are errors of fx.New, all at once.
func Module(name string, opts ...Option) fx.Option {
	site := graph.CallSite()
	s := &settings{name: name, module: true, key: name}
	if name == "" {
		s.fault(call("Module", name), "the name must not be empty")
	}
	s, err := newSettings(s, opts)
	if err != nil {
		return fx.Error(at(s.moduleText()+" ("+graph.Place(site)+")", err))
	}
	tag := graph.NameTag(name)
	provided := []any{
		graph.OneOfName(site, name),
		provideStopping(name, site),
		graph.Located(s.provideLock(), site, fx.ResultTags(tag)),
	}
	if !s.named {
		provided = append(provided, graph.OneUnnamed(site), graph.Located(graph.PassOn(reflect.TypeFor[*Lock](), tag), site))
	}
	if s.store.inGraph() {
		provided = append(provided, s.store.provide(name, site))
	}
	for _, b := range s.bodies {
		provided = append(provided, b.provide(s)...)
	}
	if s.private {
		provided = append(provided, fx.Private)
	}
	all := []fx.Option{fx.Provide(provided...), fx.Provide(s.provideReach(site))}
	for _, b := range s.bodies {
		if b.purpose.forced() {
			all = append(all, fx.Invoke(b.force(s)))
		}
	}
	return fx.Options(all...)
}

// provideLock returns the constructor of the lock. It takes the store, the logger
// and what is shared.
func (s *settings) provideLock() any {
	var p graph.Params
	storeField := 0
	if s.store.inGraph() {
		storeField = p.Add(storeType, s.store.tag(s.name))
	}
	loggerField := p.Add(reflect.TypeFor[*zap.Logger](), `optional:"true"`)
	namespaceField := p.Add(reflect.TypeFor[namespace](), `optional:"true"`)
	stoppingField := p.Add(stoppingType, stoppingTag(s.name))
	allField := p.Add(reflect.SliceOf(stoppingType), stoppingGroup)
	lifecycleField := p.Add(reflect.TypeFor[fx.Lifecycle](), "")
	sharedFields := make([]int, len(s.shared))
	for i, k := range s.shared {
		if k.Group != "" {
			sharedFields[i] = p.Add(reflect.SliceOf(k.Type), fmt.Sprintf("group:%q", k.Group))
		} else {
			sharedFields[i] = p.Add(k.Type, graph.NameTag(k.Name))
		}
	}
	return graph.Constructor([]reflect.Type{p.Type()}, reflect.TypeFor[*Lock](), func(args []reflect.Value) (reflect.Value, error) {
		in := args[0]
		var store lockfx.Store
		if s.store != nil {
			store = s.store.value
		}
		if storeField != 0 {
			store, _ = in.Field(storeField).Interface().(lockfx.Store)
			if graph.IsNil(store) {
				return reflect.Value{}, fmt.Errorf("%s: %w: %s: the store must not be nil", s.moduleText(), lockfx.ErrConfig, s.store.text)
			}
		}
		own, err := s.in(in.Field(namespaceField).Interface().(namespace))
		if err != nil {
			return reflect.Value{}, fmt.Errorf("%s: %w", s.moduleText(), err)
		}
		l, err := newLock(own, store, in.Field(loggerField).Interface().(*zap.Logger))
		if err != nil {
			return reflect.Value{}, err
		}
		l.shared = make(map[runscope.Key]reflect.Value, len(s.shared))
		for i, k := range s.shared {
			l.shared[k] = in.Field(sharedFields[i])
		}
		in.Field(stoppingField).Interface().(*stopping).join(l, in.Field(allField).Interface().([]*stopping))
		in.Field(lifecycleField).Interface().(fx.Lifecycle).Append(l.hook())
		return reflect.ValueOf(l), nil
	})
}
