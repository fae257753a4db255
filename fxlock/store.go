package fxlock

import (
	"errors"
	"fmt"
	"reflect"

	"go.uber.org/fx"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock/internal/graph"
)

// storeChoice says where the store comes from. Exactly one of its ways is set.
type storeChoice struct {
	text  string
	value lockfx.Store  // WithStore
	ctor  reflect.Value // StoreFrom: a func(...) (lockfx.Store, error)
	pc    uintptr       // StoreFrom: the constructor, for messages
	graph string        // StoreFromGraph: the struct tag
}

// owned reports whether the store belongs to the lock alone and ends with it.
func (c *storeChoice) owned() bool { return c != nil && c.ctor.IsValid() }

func (s *settings) chooseStore(c *storeChoice) {
	if s.store != nil {
		s.fault(c.text, s.store.text+" already says where the store comes from")
	}
	s.store = c
}

// WithStore gives the lock a store. The lock does not close it.
func WithStore(store lockfx.Store) Option {
	text := "fxlock.WithStore(" + orNil(store, storeText(store)) + ")"
	return option{text, func(s *settings) {
		if graph.IsNil(store) {
			s.fault(text, "must not be nil")
		}
		s.chooseStore(&storeChoice{text: text, value: store})
	}}
}

// storeText prints the type of a store by a name that its reader can use.
func storeText(store lockfx.Store) string {
	if _, ok := store.(*MemoryStore); ok {
		return "*fxlock.MemoryStore"
	}
	return fmt.Sprintf("%T", store)
}

// StoreFrom gives the lock a store of its own: ctor is a constructor that takes
// anything from the graph and returns a [lockfx.Store], or something that is one,
// and optionally an error. It may be what fx.Annotate returns, say to take a named
// client; a variadic parameter is left out. The store is in nobody else's reach, and if it is a [lockfx.Closer] it
// is closed after the lock was disposed of. If it can't be built, fx.New fails.
func StoreFrom(ctor any) Option {
	text := "fxlock.StoreFrom(" + graph.CtorText(ctor) + ")"
	return option{text, func(s *settings) {
		s.moduleOnly(text)
		fn, err := storeCtor(ctor)
		if err != nil {
			s.faultErr(text, err)
		}
		s.chooseStore(&storeChoice{text: text, ctor: fn, pc: graph.EntryOf(ctor)})
	}}
}

// StoreFromGraph makes the lock use the [lockfx.Store] that the application
// provides, unnamed or under the given name. If there is none, fx.New fails. The
// lock does not close it.
func StoreFromGraph(name ...string) Option {
	text := "fxlock.StoreFromGraph(" + graph.Quoted(name) + ")"
	return option{text, func(s *settings) {
		s.moduleOnly(text)
		if len(name) > 1 {
			s.fault(text, "takes one name at most")
		}
		s.chooseStore(&storeChoice{text: text, graph: graph.NameTag(name...)})
	}}
}

var storeType = reflect.TypeFor[lockfx.Store]()

// storeCtor makes ctor a func(...) (lockfx.Store, error) with the same parameters.
func storeCtor(ctor any) (reflect.Value, error) {
	built, err := graph.Build(ctor)
	if err != nil {
		return reflect.Value{}, err
	}
	fn := reflect.ValueOf(built)
	if fn.Kind() != reflect.Func || fn.IsNil() {
		return reflect.Value{}, errors.New("must be a constructor")
	}
	t := fn.Type()
	ok := t.NumOut() == 1 || t.NumOut() == 2 && t.Out(1) == graph.ErrorType
	if !ok || !t.Out(0).Implements(storeType) {
		return reflect.Value{}, fmt.Errorf("%v must return a lockfx.Store and optionally an error; leave out fx.As and fx.ResultTags", t)
	}
	n := t.NumIn()
	if t.IsVariadic() {
		n--
	}
	in := make([]reflect.Type, n)
	for i := range in {
		in[i] = t.In(i)
	}
	made := reflect.FuncOf(in, []reflect.Type{storeType, graph.ErrorType}, false)
	return reflect.MakeFunc(made, func(args []reflect.Value) []reflect.Value {
		out := fn.Call(args)
		failure := reflect.Zero(graph.ErrorType)
		if len(out) == 2 {
			failure = out[1]
		}
		if failure.IsNil() && graph.IsNil(out[0].Interface()) {
			failure = reflect.ValueOf(fmt.Errorf("%w: %v returned a nil store", lockfx.ErrConfig, t)).Convert(graph.ErrorType)
		}
		store := reflect.Zero(storeType)
		if failure.IsNil() {
			store = out[0].Convert(storeType)
		}
		return []reflect.Value{store, failure}
	}), nil
}

// inGraph reports whether the store comes out of the graph.
func (c *storeChoice) inGraph() bool { return c != nil && c.value == nil }

// provide returns the constructor that puts the store into the graph, under a name that
// only this lock asks for. Where the application has none to give, fx prints the name.
func (c *storeChoice) provide(lock string, site uintptr) any {
	made, pc := graph.PassOn(storeType, c.graph), site
	if c.owned() {
		made, pc = c.ctor.Interface(), c.pc
	}
	return graph.Located(made, pc, fx.ResultTags(c.tag(lock)))
}

// tag returns the struct tag that the lock asks for its store with.
func (c *storeChoice) tag(lock string) string {
	if c.owned() {
		return graph.NameTag(fmt.Sprintf("lock %s, fxlock.StoreFrom", lock))
	}
	return graph.NameTag(fmt.Sprintf("lock %s, fxlock.StoreFromGraph; if lockfx.Store is missing: fx.Provide one, by fx.As if its constructor "+
		"returns another type", lock))
}
