package runscope

import (
	"fmt"
	"reflect"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"go.uber.org/dig"

	"github.com/lockfx/lockfx"
)

// Scope is the scope of one run.
type Scope struct {
	plan   *Plan
	absent map[Key]bool  // what is bound as a zero value, since the application does not have it
	owner  atomic.Uint64 // the goroutine that holds mu, if it is known

	closing sync.Mutex // guards closed and ended; it is never held for long
	closed  bool
	ended   chan struct{} // made by Close while mu is held, and closed when it is not

	mu       sync.Mutex // guards what follows; dig is not safe for concurrent use
	root     *dig.Container
	child    *dig.Scope
	primed   bool
	building string // the label of the constructor that was called last
}

// provide adds a constructor to the run's scope.
func (s *Scope) provide(k *ctor) error {
	fn, err := k.rebuild()
	if err != nil {
		return err
	}
	// dig calls this right before the constructor, when all that it needs is built:
	// the last one noted is the one that failed.
	note := dig.WithProviderBeforeCallback(func(dig.BeforeCallbackInfo) { s.building = k.Label })
	return s.child.Provide(fn, append(k.opts[:len(k.opts):len(k.opts)], note)...)
}

// Args builds what the body needs and returns its arguments, in order and ready
// for [reflect.Value.Call]; a variadic parameter is left out. The error of a
// constructor is a [CtorError] that wraps it; so is a panic, as a [lockfx.PanicError].
func (s *Scope) Args() ([]reflect.Value, error) {
	// Without the by-hand resolver no constructor can come back here.
	if err := s.lock(s.plan.hand); err != nil {
		return nil, err
	}
	defer s.unlock()
	return s.resolve(s.plan.collect, s.plan.soft)
}

// Resolve builds the arguments of a function of type fn from what is bound in the
// scope. It may be called by many goroutines, which then wait for each other, and
// not by a constructor that the scope is building: that returns [ErrReentrant].
// What is not bound is reported as a [MissingError], and any other error as by
// Args. After Close it returns [ErrClosed].
//
// What a function asks for is built once per run. A function that asks for a value
// group adds some 300 bytes to the scope on each call, until Close.
func (s *Scope) Resolve(fn reflect.Type) ([]reflect.Value, error) {
	if err := s.lock(true); err != nil {
		return nil, err
	}
	defer s.unlock()
	if fn == nil || fn.Kind() != reflect.Func {
		return nil, fmt.Errorf("resolve the parameters of %v: must be a function", fn)
	}
	types := positional(fn)
	if err := judgeParams(types); err != nil {
		return nil, fmt.Errorf("resolve the parameters of %v: %w", fn, err)
	}
	soft := false
	var missing []Key
	for _, l := range params(types) {
		soft = soft || l.Soft
		if !l.Optional && (s.absent[l.Key] || !s.plan.bound[l.Key]) {
			missing = append(missing, l.Key)
		}
	}
	if missing != nil {
		return nil, &MissingError{Keys: missing}
	}
	return s.resolve(reflect.FuncOf(types, nil, false), soft)
}

// Close ends the scope: from now on it resolves nothing, and what it holds is dropped. A
// Resolve that is under way goes on: then the channel is not nil, and closes at its end.
func (s *Scope) Close() (resolving <-chan struct{}) {
	s.closing.Lock()
	defer s.closing.Unlock()
	s.closed = true
	if s.mu.TryLock() {
		defer s.mu.Unlock()
		s.root, s.child = nil, nil
		return nil
	}
	if s.ended == nil {
		s.ended = make(chan struct{})
	}
	return s.ended
}

// resolve builds the arguments of a function of type collect, which has no
// results. The caller holds mu.
func (s *Scope) resolve(collect reflect.Type, soft bool) (args []reflect.Value, err error) {
	s.building = ""
	defer func() {
		if p := recover(); p != nil {
			args, err = nil, s.blame(&lockfx.PanicError{Value: p, Stack: debug.Stack()})
		}
	}()
	if soft && !s.primed {
		err = s.primeSoft()
	}
	if err == nil {
		// The function only takes the arguments: the body is called outside of dig, so
		// that its error is never mistaken for one of the wiring.
		take := reflect.MakeFunc(collect, func(in []reflect.Value) []reflect.Value { args = in; return nil })
		err = s.child.Invoke(take.Interface())
	}
	if err != nil {
		return nil, s.blame(rootCause(err))
	}
	return args, nil
}

// primeSoft has the application's values mirrored. dig builds nothing for a soft
// group, and the mirror is not built yet when a soft group is all that is asked for.
func (s *Scope) primeSoft() error {
	s.primed = true
	return s.root.Invoke(s.plan.prime)
}

func (s *Scope) blame(err error) error {
	if s.building == "" {
		return err
	}
	return &CtorError{Label: s.building, Err: err}
}

// lock takes mu. Where the caller may be a constructor that runs under mu, it is
// told apart by its goroutine.
func (s *Scope) lock(fromCtor bool) error {
	var me uint64
	if fromCtor {
		if me = goroutine(); me != 0 && s.owner.Load() == me {
			return ErrReentrant
		}
	}
	s.mu.Lock()
	if s.over() {
		s.unlock()
		return ErrClosed
	}
	s.owner.Store(me)
	return nil
}

func (s *Scope) over() bool {
	s.closing.Lock()
	defer s.closing.Unlock()
	return s.closed
}

// unlock leaves mu. Where Close waits for that, it drops what the scope holds.
func (s *Scope) unlock() {
	s.owner.Store(0)
	s.closing.Lock()
	defer s.closing.Unlock()
	if s.ended != nil {
		s.root, s.child = nil, nil
		close(s.ended)
		s.ended = nil
	}
	s.mu.Unlock()
}
