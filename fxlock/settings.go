package fxlock

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock/internal/faults"
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
	bodies          []*body
	run             runSettings // of every run that says nothing else; its label is label

	planner plan.Planner // of what the above says about the scope of a run

	faults []error
}

const (
	defaultTTL             = 30 * time.Second
	startTTL               = 5 * time.Second // a third of the time that fx gives a start
	defaultTeardownTimeout = 15 * time.Second
	defaultTokenName       = "lock:fence"
	defaultHolderName      = "lock:holder"
)

// newSettings adds up the options, or returns all their faults.
func newSettings(s *settings, opts []Option) (*settings, error) {
	s.teardownTimeout = defaultTeardownTimeout
	s.tokenName, s.holderName = defaultTokenName, defaultHolderName
	s.clock = lockfx.SystemClock()
	for i, o := range opts {
		if o == nil {
			s.faults = append(s.faults, fmt.Errorf("%w: option %d is nil", lockfx.ErrConfig, i+1))
			continue
		}
		o.applyLock(s)
	}
	if s.name == "" {
		s.name = s.key
	}
	if s.ttl == 0 {
		s.ttl = s.defaultTTL()
	}
	s.ownLabel = processLabel() + s.name
	if s.tokenName == s.holderName {
		s.fault(call("WithTokenName", s.tokenName), "the token and the holder need different names")
	}
	if err := s.lifecycle(placeholder{}).Check(); err != nil {
		s.faults = append(s.faults, err)
	}
	s.plan()
	return s, errors.Join(s.faults...)
}

// plan asks the planner for the scope of every body. What [PerRun] and [Share] add is
// planned by itself first, so that its faults are said once, and also when no body
// is bound.
func (s *settings) plan() {
	lock := reflect.TypeFor[*Lock]()
	s.planner = plan.Planner{
		Module: s.moduleText(), Graph: s.module, Own: []runscope.Key{{Type: lock, Name: s.name}},
		TokenName: s.tokenName, HolderName: s.holderName, Hand: reflect.TypeFor[*Scope](), Ctors: s.ctors, Shared: s.shared,
	}
	if !s.named {
		s.planner.Own = append(s.planner.Own, runscope.Key{Type: lock})
	}
	p := &s.planner
	unreached, err := p.Check()
	if err != nil {
		s.faultErr("the scope of a run", err)
		p = p.WithoutAdditions()
	}
	if c := s.run.condition.value; c != nil {
		if err := p.CheckCondition(c.fn.Type()); err != nil {
			s.faultErr(c.text, err)
			s.run.condition = choice[*condition]{} // or each body would say it again
		}
	}
	for _, b := range s.bodies {
		b.plan(s, p)
	}
	if unreached != nil && len(s.bodies) == 0 {
		s.faultErr("the scope of a run", unreached)
	}
}

// defaultTTL returns the ttl where no option sets it.
func (s *settings) defaultTTL() time.Duration {
	if !s.module {
		s.fault("fxlock.WithTTL", "is required where there is no application")
	}
	starts := slices.ContainsFunc(s.bodies, func(b *body) bool { _, ok := b.purpose.(asOnStart); return ok })
	if starts && 2*s.heartbeat <= startTTL {
		return startTTL
	}
	return defaultTTL
}

// placeholder stands for a store that is not there yet.
type placeholder struct{ lockfx.Store }

// lifecycle returns what the machine over store is made of.
func (s *settings) lifecycle(store lockfx.Store) lifecycle.Config {
	return lifecycle.Config{
		Name:           s.name,
		Key:            s.key,
		Store:          store,
		TTL:            s.ttl,
		Heartbeat:      s.heartbeat,
		ReleaseTimeout: s.releaseTimeout,
		RenewRetry:     s.renewRetry,
		CallTimeout:    s.callTimeout,
		Terms:          s.run.terms(),
		Clock:          s.clock,
		OnLost:         s.onLost,
		Observers:      s.observers,
	}
}

// leads reports whether the module has a Lead.
func (s *settings) leads() bool {
	return slices.ContainsFunc(s.bodies, func(b *body) bool { _, ok := b.purpose.(asLeader); return ok })
}

// moduleOnly refuses an option that makes sense in a graph alone.
func (s *settings) moduleOnly(text string) {
	if !s.module {
		s.fault(text, "needs an fx application: use fxlock.Module")
	}
}

func (s *settings) bindingName(to *string, text, name string) {
	if name == "" {
		s.fault(text, "must not be empty")
		return
	}
	*to = name
}

// moduleText is how messages call the lock.
func (s *settings) moduleText() string {
	if s.module {
		return "fxlock.Module(" + strconv.Quote(s.name) + ")"
	}
	return "fxlock.New(" + strconv.Quote(s.name) + ")"
}

var processLabel = sync.OnceValue(func() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown-host"
	}
	return host + "/" + strconv.Itoa(os.Getpid()) + "/"
})

// fault notes that the option printed as text breaks rule.
func (s *settings) fault(text, rule string) { s.faults = append(s.faults, faults.New(text, rule)) }

func (s *settings) faultErr(text string, err error) {
	s.faults = append(s.faults, faults.Of(text, err))
}
