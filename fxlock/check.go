package fxlock

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"sync"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock/internal/plan"
	"github.com/lockfx/lockfx/internal/runscope"
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
	if s.starts && 2*s.heartbeat <= startTTL {
		return startTTL
	}
	return defaultTTL
}

// placeholder stands for a store that is not there yet.
type placeholder struct{ lockfx.Store }

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

// settle adds up the options of a run.
func (s *settings) settle(opts []RunOption) (runSettings, error) {
	run, err := newRunSettings(opts)
	run = run.over(s.run)
	if len(run.after) > 0 {
		err = errors.Join(err, fmt.Errorf("%w: fxlock.After %s", lockfx.ErrConfig, misplacedAfter))
	}
	return run, errors.Join(err, run.check())
}
