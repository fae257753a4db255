package fxlock

import (
	"fmt"
	"reflect"

	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock/internal/faults"
	"github.com/lockfx/lockfx/fxlock/internal/graph"
	"github.com/lockfx/lockfx/fxlock/internal/stop"
	"github.com/lockfx/lockfx/internal/runscope"
)

// Module puts a lock into an fx application: a *Lock as `name:"<name>"` and, unless
// [Named] is given, unnamed too, and an F for each [Body]. Unless options set them, the
// key is the name, and the ttl is 30 s, or 5 s in a module with an [OnStart].
//
// [WithStore], [StoreFrom] or [StoreFromGraph] choose the store. Without any of them
// the lock uses a new memory store, and logs a warning that it does not exclude other
// processes.
//
// The application's stop disposes of the lock when everything that was built with it has
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
		return fx.Error(faults.At(s.moduleText()+" ("+graph.Place(site)+")", err))
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
	all := []fx.Option{fx.Provide(provided...), fx.Provide(shareStopping(name, site), s.provideReach(site))}
	for _, b := range s.bodies {
		if invoke := b.force(s); invoke != nil {
			all = append(all, fx.Invoke(invoke))
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
		l.joinStop(in.Field(stoppingField).Interface().(*stop.Member), in.Field(allField).Interface().([]*stop.Member))
		in.Field(lifecycleField).Interface().(fx.Lifecycle).Append(l.hook())
		return reflect.ValueOf(l), nil
	})
}

// Bind puts a lock that was made with [New] into an application, as
// `name:"<name>"`. The application's stop disposes of it, even if nothing takes it.
// If the name is taken, fx.New fails.
func Bind(name string, lock *Lock) fx.Option {
	site := graph.CallSite()
	if name == "" || lock == nil {
		return fx.Error(fmt.Errorf("fxlock.Bind(%q) (%s): %w: the name must not be empty and the lock not nil",
			name, graph.Place(site), lockfx.ErrConfig))
	}
	tag := graph.NameTag(name)
	provide := func(lc fx.Lifecycle, own *stop.Member, all []*stop.Member) *Lock {
		lock.joinStop(own, all)
		lc.Append(lock.hook())
		return lock
	}
	return fx.Options(
		fx.Provide(graph.OneOfName(site, name), provideStopping(name, site), shareStopping(name, site),
			graph.Located(provide, site, fx.ParamTags("", stoppingTag(name), stoppingGroup), fx.ResultTags(tag))),
		fx.Invoke(fx.Annotate(func(*Lock) {}, fx.ParamTags(tag))),
	)
}

// New returns a lock outside an application. The caller disposes of it, or passes it to
// [Bind]. [WithKey] and [WithTTL] are required. Options that take values from a graph are
// refused. All faults are reported together; each matches [lockfx.ErrConfig].
func New(opts ...Option) (*Lock, error) {
	s, err := newSettings(&settings{}, opts)
	if err != nil {
		return nil, faults.At(s.moduleText(), err)
	}
	var store lockfx.Store
	if s.store != nil {
		store = s.store.value
	}
	return newLock(s, store, nil)
}

// Namespace puts name and a slash before the keys of an application's locks, so that two
// applications that share a store, and both have a fxlock.Module("migrations"), don't
// exclude each other. A key that [WithKey] sets stays as it is, so two applications can
// share a lock by it. If name makes a key that [lockfx.CheckKey] refuses, fx.New fails.
// The locks of [New] have no namespace.
func Namespace(name string) fx.Option {
	site := graph.CallSite()
	if err := lockfx.CheckKey(name); err != nil {
		return fx.Error(fmt.Errorf("%s (%s): %w", call("Namespace", name), graph.Place(site), err))
	}
	return fx.Provide(
		graph.OneNamespace(site),
		graph.Located(func() namespace { return namespace(name) }, site),
	)
}

// namespace is the name of a Namespace, or "".
type namespace string

// in returns s with its key in n, unless an option has set the key.
func (s *settings) in(n namespace) (*settings, error) {
	if n == "" || s.ownKey {
		return s, nil
	}
	own := *s // an option value may serve more than one application
	own.key = string(n) + "/" + s.key
	return &own, lockfx.CheckKey(own.key)
}

// Named leaves out the unnamed binding: the lock is in the graph only as `name:"..."`.
// All but one of an application's modules need it.
func Named() Option {
	return option{"fxlock.Named()", func(s *settings) {
		s.named = true
		s.moduleOnly("fxlock.Named()")
	}}
}

// Private keeps the lock, its bodies and its store inside the enclosing fx.Module.
func Private() Option {
	return option{"fxlock.Private()", func(s *settings) {
		s.private = true
		s.moduleOnly("fxlock.Private()")
	}}
}
