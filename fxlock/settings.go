package fxlock

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock/internal/faults"
	"github.com/lockfx/lockfx/fxlock/internal/graph"
	"github.com/lockfx/lockfx/fxlock/internal/plan"
	"github.com/lockfx/lockfx/internal/lifecycle"
	"github.com/lockfx/lockfx/internal/runscope"
)

// settings is what the options of one lock add up to. After newSettings nothing
// writes to it, so one option value serves many applications.
type settings struct {
	name            string
	module          bool // made by Module, not by New
	key             string
	ownKey          bool   // WithKey has set it
	label           string // as given, or ""
	ownLabel        string
	ttl             time.Duration
	heartbeat       time.Duration
	releaseTimeout  time.Duration
	teardownTimeout time.Duration
	callTimeout     time.Duration
	renewRetry      bool
	clock           lockfx.Clock
	tokenName       string
	holderName      string
	onLost          func(lockfx.Reason)
	observers       []func(lockfx.Event)
	logger          *zap.Logger
	named           bool
	private         bool
	store           *storeChoice
	ctors           []runscope.Ctor
	shared          []runscope.Key
	bodies          []graphBody
	starts          bool        // one of them is an [OnStart]
	leads           bool        // one of them is a [Lead]
	run             runSettings // of every run that says nothing else; its label is label

	planner plan.Planner // of what the above says about the scope of a run

	faults []error
}

// moduleOnly refuses an option that makes sense in a graph alone.
func (s *settings) moduleOnly(text string) {
	if !s.module {
		s.fault(text, "needs an fx application: use fxlock.Module")
	}
}

// fault notes that the option printed as text breaks rule.
func (s *settings) fault(text, rule string) { s.faults = append(s.faults, faults.New(text, rule)) }

func (s *settings) faultErr(text string, err error) {
	s.faults = append(s.faults, faults.Of(text, err))
}

// An Option configures a lock: [Module], [New]. It prints itself as it is written.
type Option interface {
	fmt.Stringer
	applyLock(*settings)
}

// A RunOption configures one run ([Lock.Run], [Lock.Do], [RunValue], [DoValue]) or each run
// of a [Body]; or, given to a lock, every run that says nothing else. It prints itself as it
// is written.
type RunOption interface {
	Option
	applyRun(*runSettings)
}

type option struct {
	text  string
	apply func(*settings)
}

func (o option) String() string        { return o.text }
func (o option) applyLock(s *settings) { o.apply(s) }

type runOption struct {
	option
	run func(*runSettings)
}

func (o runOption) applyRun(r *runSettings) { o.run(r) }

// orNil prints what can't be printed as it is written.
func orNil(v any, kind string) string {
	if graph.IsNil(v) {
		return "nil"
	}
	return kind
}

// call prints a call of this package with one string.
func call(name, arg string) string { return "fxlock." + name + "(" + strconv.Quote(arg) + ")" }

// newRunOption returns an option that sets the same thing for a lock and for a run.
func newRunOption(text string, set func(*runSettings)) RunOption {
	return runOption{
		option{text, func(s *settings) {
			set(&s.run)
			s.faults, s.run.faults = append(s.faults, s.run.faults...), nil
		}},
		set,
	}
}

// enter passes a gate; see [Gate.Enter].
type enter = func(ctx context.Context, key string, limit time.Duration) (leave func() error, note string, err error)

// runSettings is what the options of one run add up to.
type runSettings struct {
	label     string
	wait      choice[time.Duration]
	minHold   choice[time.Duration]
	maxHold   choice[time.Duration]
	condition choice[*condition]
	skipOn    choice[skips]
	gate      choice[enter]
	after     []reflect.Type // markers of jobs of the start

	faults []error
}

// fault notes that the option printed as text breaks rule.
func (r *runSettings) fault(text, rule string) {
	r.faults = append(r.faults, faults.New(text, rule))
}

// choice is a setting that may not have been made.
type choice[T any] struct {
	value T
	made  bool
}

func (c *choice[T]) set(v T) { c.value, c.made = v, true }

// or returns c, or other where c was not made.
func (c choice[T]) or(other choice[T]) choice[T] {
	if c.made {
		return c
	}
	return other
}

// condition is the function of an [If].
type condition struct {
	text string
	fn   reflect.Value
}

// skips says which reasons not to begin are no error.
type skips struct{ held, unwanted bool }

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

// inGraph reports whether the store comes out of the graph.
func (c *storeChoice) inGraph() bool { return c != nil && c.value == nil }

// graphBody is a body as the graph of an application knows it.
type graphBody interface {
	plan(*settings, *plan.Planner)
	provide(*settings) []any
	gives(*settings) (t reflect.Type, tag string) // what provide gives for others to take
	force(*settings) any                          // for fx.Invoke; nil if the body acts only when it is taken
}

// misplacedAfter is the rule of [After].
const misplacedAfter = "is for a fxlock.Body, an OnStart or a Lead"

// newRunSettings adds up the options of a run, or returns all their faults.
func newRunSettings(opts []RunOption) (runSettings, error) {
	if len(opts) == 0 { // nothing of what follows is allocated
		return runSettings{}, nil
	}
	var r runSettings
	for i, o := range opts {
		if o == nil {
			r.faults = append(r.faults, fmt.Errorf("%w: run option %d is nil", lockfx.ErrConfig, i+1))
			continue
		}
		o.applyRun(&r)
	}
	return r, errors.Join(r.faults...)
}

// over returns r with what it leaves open taken from the lock's own settings.
func (r runSettings) over(lock runSettings) runSettings {
	r.wait = r.wait.or(lock.wait)
	r.minHold = r.minHold.or(lock.minHold)
	r.maxHold = r.maxHold.or(lock.maxHold)
	r.condition = r.condition.or(lock.condition)
	r.skipOn = r.skipOn.or(lock.skipOn)
	r.gate = r.gate.or(lock.gate)
	return r
}

// terms are those of a lease that is held by hand.
func (r runSettings) terms() lifecycle.Terms {
	return lifecycle.Terms{MinHold: r.minHold.value, MaxHold: r.maxHold.value}
}

// check returns the fault of settings that do not go together.
func (r runSettings) check() error {
	if shortest, longest := r.minHold, r.maxHold; longest.value > 0 && shortest.value > longest.value {
		return fmt.Errorf("%w: fxlock.MinHold(%v) must be at most fxlock.MaxHold(%v)", lockfx.ErrConfig, shortest.value, longest.value)
	}
	return nil
}

const (
	defaultTTL             = 30 * time.Second
	startTTL               = 5 * time.Second // a third of the time that fx gives a start
	defaultTeardownTimeout = 15 * time.Second
	defaultTokenName       = "lock:fence"
	defaultHolderName      = "lock:holder"
)
