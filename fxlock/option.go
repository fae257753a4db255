package fxlock

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock/internal/graph"
)

// An Option configures a lock: [Module], [New]. It prints itself as it is written.
type Option interface {
	fmt.Stringer
	applyLock(*settings)
}

// A RunOption configures one run: [Lock.Run], [Lock.Do], [Body], [RunValue],
// [DoValue]. It prints itself as it is written.
type RunOption interface {
	fmt.Stringer
	applyRun(*runSettings)
}

// A LockOrRunOption configures a lock, or a single run of it, which then wins.
type LockOrRunOption interface {
	Option
	RunOption
}

type option struct {
	text  string
	apply func(*settings)
}

func (o option) String() string        { return o.text }
func (o option) applyLock(s *settings) { o.apply(s) }

type lockOrRunOption struct {
	option
	run func(*runSettings)
}

func (o lockOrRunOption) applyRun(r *runSettings) { o.run(r) }

// runSettings is what the options of one run add up to.
type runSettings struct {
	label     string
	wait      choice[time.Duration]
	minHold   choice[time.Duration]
	maxHold   choice[time.Duration]
	condition choice[*condition]
	skipOn    choice[skips]
	gate      choice[gateOf]
	after     []reflect.Type // markers of jobs of the start

	faults []error
}

// fault notes that the option printed as text breaks rule.
func (r *runSettings) fault(text, rule string) {
	r.faults = append(r.faults, fmt.Errorf("%w: %s: %s", lockfx.ErrConfig, text, rule))
}

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

// positive is an option that sets a duration of at least 1 ms.
func positive(name string, d time.Duration, set func(*settings)) Option {
	text := name + "(" + d.String() + ")"
	return option{text, func(s *settings) {
		if rule := brokenBy(d); rule != "" {
			s.fault(text, rule)
			return
		}
		set(s)
	}}
}

// WithKey sets the key in the store; the default is the name of the module.
// [lockfx.CheckKey] has the rule. [New] requires it.
func WithKey(key string) Option {
	return option{call("WithKey", key), func(s *settings) { s.key, s.ownKey = key, true }}
}

// WithTTL sets the lease asked for, 1 ms or more; the default of a module is 30 s, and 5 s
// where there is an [OnStart], so that a replica that dies in its work does not fail the
// starts of others. A holder that dies blocks the others for at most this long. [New]
// requires it.
func WithTTL(ttl time.Duration) Option {
	text := "fxlock.WithTTL(" + ttl.String() + ")"
	return option{text, func(s *settings) {
		if rule := brokenBy(ttl); rule != "" {
			s.fault(text, rule)
			ttl = defaultTTL // so that nothing is blamed for it
		}
		s.ttl = ttl
	}}
}

// WithHeartbeat sets the time from one renewal to the next, greater than 0 and at
// most half the ttl; the default is a third of the ttl.
func WithHeartbeat(interval time.Duration) Option {
	return positive("fxlock.WithHeartbeat", interval, func(s *settings) { s.heartbeat = interval })
}

// WithReleaseTimeout bounds giving a lease back, which goes on when the context of
// the run has ended; the default is the smaller of the ttl and 5 s.
func WithReleaseTimeout(d time.Duration) Option {
	return positive("fxlock.WithReleaseTimeout", d, func(s *settings) { s.releaseTimeout = d })
}

// WithTeardownTimeout bounds the OnStop hooks of a run's scope, which run while
// the lease is still held and renewed; the default is 15 s, as in fx. Their context ends
// with it, and with a loss of the lease under them.
func WithTeardownTimeout(d time.Duration) Option {
	return positive("fxlock.WithTeardownTimeout", d, func(s *settings) { s.teardownTimeout = d })
}

// WithRenewRetry makes a heartbeat that met an error be tried again, with
// back-off, until the local deadline: the lease is ours until then. Without it any
// error loses the lease at once. A heartbeat that the store refused is final in
// both cases.
func WithRenewRetry() Option {
	return option{"fxlock.WithRenewRetry()", func(s *settings) { s.renewRetry = true }}
}

// WithClock sets the clock that leases are judged by on this side, and its timers.
// A default memory store uses it too.
func WithClock(clock lockfx.Clock) Option {
	text := "fxlock.WithClock(" + orNil(clock, fmt.Sprintf("%T", clock)) + ")"
	return option{text, func(s *settings) {
		if graph.IsNil(clock) {
			s.fault(text, "must not be nil")
			return
		}
		s.clock = clock
	}}
}

// WithTokenName sets the name under which a run binds its token beside the unnamed
// one; the default is "lock:fence".
func WithTokenName(name string) Option {
	text := call("WithTokenName", name)
	return option{text, func(s *settings) { s.bindingName(&s.tokenName, text, name) }}
}

// WithHolderName sets the name under which a run binds its holder beside the
// unnamed one; the default is "lock:holder".
func WithHolderName(name string) Option {
	text := call("WithHolderName", name)
	return option{text, func(s *settings) { s.bindingName(&s.holderName, text, name) }}
}

// WithOnLost makes onLost be called once for each lease that is lost, after the
// context of the run has been cancelled, outside of every mutex. It is called after the
// observers ([Observer]), and may wait for the run, or call [Lock.Dispose]: the run does
// not wait for it. A panic of it is contained and reported as
// [lockfx.EventCallbackPanicked].
func WithOnLost(onLost func(lockfx.Reason)) Option {
	text := "fxlock.WithOnLost(" + orNil(onLost, "func") + ")"
	return option{text, func(s *settings) {
		if onLost == nil {
			s.fault(text, "must not be nil")
		}
		s.onLost = onLost
	}}
}

// Observer makes observe receive every event of the lock, in order, one at a time,
// outside of every mutex: all that the log says, for metrics and traces. It may be
// given more than once. A panic of it is contained and reported as
// [lockfx.EventCallbackPanicked].
//
// observe should return soon. A body begins when observe knows of the acquisition, so it
// must not wait for a run, nor call [Lock.Dispose] during one. At most 1,024 events wait
// for it, and losses up to twice as many: more are dropped, and
// [lockfx.EventsDropped] says how many.
func Observer(observe func(lockfx.Event)) Option {
	text := "fxlock.Observer(" + orNil(observe, "func") + ")"
	return option{text, func(s *settings) {
		if observe == nil {
			s.fault(text, "must not be nil")
			return
		}
		s.observers = append(s.observers, observe)
	}}
}

// WithLogger sets the logger instead of the application's, or for [New].
func WithLogger(logger *zap.Logger) Option {
	text := "fxlock.WithLogger(" + orNil(logger, "*zap.Logger") + ")"
	return option{text, func(s *settings) {
		if logger == nil {
			s.fault(text, "must not be nil; zap.NewNop() is silent")
		}
		s.logger = logger
	}}
}

// WithLabel sets what those who are refused see as the holder. It is for people
// and decides nothing. Without one, or with "", it is the label of the run's context
// ([lockfx.WithLabel]), or else host/pid/lock.
func WithLabel(label string) LockOrRunOption {
	return lockOrRunOption{
		option{call("WithLabel", label), func(s *settings) { s.label = label }},
		func(r *runSettings) { r.label = label },
	}
}

// Named leaves the lock without its unnamed binding: it is in the graph under
// `name:"..."` alone. All but one of an application's modules need it.
func Named() Option {
	return option{"fxlock.Named()", func(s *settings) {
		s.named = true
		s.moduleOnly("fxlock.Named()")
	}}
}

// Private keeps the lock, its bodies and its store inside the fx.Module that the
// module stands in.
func Private() Option {
	return option{"fxlock.Private()", func(s *settings) {
		s.private = true
		s.moduleOnly("fxlock.Private()")
	}}
}

// orNil prints what can't be printed as it is written.
func orNil(v any, kind string) string {
	if graph.IsNil(v) {
		return "nil"
	}
	return kind
}

// call prints a call of this package with one string.
func call(name, arg string) string { return "fxlock." + name + "(" + strconv.Quote(arg) + ")" }
