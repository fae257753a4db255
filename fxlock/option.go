package fxlock

import (
	"context"
	"fmt"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock/internal/faults"
	"github.com/lockfx/lockfx/fxlock/internal/graph"
	"github.com/lockfx/lockfx/internal/lifecycle"
)

// positive is an option that sets a duration of at least 1 ms.
func positive(name string, d time.Duration, set func(*settings)) Option {
	text := name + "(" + d.String() + ")"
	return option{text, func(s *settings) {
		if rule := faults.OfDuration(d); rule != "" {
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

// WithTTL sets the ttl of the lease, 1 ms or more; the default of a module is 30 s, and 5 s
// in a module with an [OnStart], so that a replica that dies in its work does not fail the
// starts of others. A holder that dies blocks the others for at most this long. [New]
// requires it.
func WithTTL(ttl time.Duration) Option {
	text := "fxlock.WithTTL(" + ttl.String() + ")"
	return option{text, func(s *settings) {
		if rule := faults.OfDuration(ttl); rule != "" {
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

// WithReleaseTimeout bounds a release, which goes on when the context of the run has ended;
// the default is the smaller of the ttl and 5 s.
func WithReleaseTimeout(d time.Duration) Option {
	return positive("fxlock.WithReleaseTimeout", d, func(s *settings) { s.releaseTimeout = d })
}

// WithTeardownTimeout bounds the teardown of a run's scope: its OnStop hooks, which run while
// the lease is still held and renewed; the default is 15 s, as in fx. Their context ends
// with the timeout, and with a loss of the lease. Half of the timeout is for what a body has
// left running in a [Scope].
//
// The run does not wait for a hook that ignores its context: a tenth of the timeout later it
// returns an error that names the hook. The lease is then not renewed any more. It is released
// when the hook has returned and the remaining hooks were called; until then this lock is not
// idle.
func WithTeardownTimeout(d time.Duration) Option {
	return positive("fxlock.WithTeardownTimeout", d, func(s *settings) { s.teardownTimeout = d })
}

// WithRenewRetry retries a heartbeat that met an error, with back-off, until the local
// deadline: the lease is still valid until then. Without it any error loses the lease at
// once. A heartbeat that the store refuses is final in both cases.
func WithRenewRetry() Option {
	return option{"fxlock.WithRenewRetry()", func(s *settings) { s.renewRetry = true }}
}

// WithClock sets the clock by which this process trusts its leases, and its timers. A
// default memory store uses it too.
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

// WithLabel sets the name of the holder that refused callers see. It is for people and
// decides nothing. Without one, or with "", it is the label of the run's context
// ([lockfx.WithLabel]), or else host/pid/lock.
func WithLabel(label string) RunOption {
	return runOption{
		option{call("WithLabel", label), func(s *settings) { s.label = label }},
		func(r *runSettings) { r.label = label },
	}
}

// WithCallTimeout bounds each call of the store. Without it the lease bounds a request or a
// heartbeat, and [WithReleaseTimeout] a release.
func WithCallTimeout(d time.Duration) Option {
	return positive("fxlock.WithCallTimeout", d, func(s *settings) { s.callTimeout = d })
}

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

// labelled returns ctx with the label that refused callers elsewhere see: own, if it is
// set.
func (s *settings) labelled(ctx context.Context, own string) context.Context {
	switch {
	case own != "":
		return lockfx.WithLabel(ctx, own)
	case s.label != "":
		return lockfx.WithLabel(ctx, s.label)
	case lockfx.LabelFrom(ctx) != "":
		return ctx
	default:
		return lockfx.WithLabel(ctx, s.ownLabel)
	}
}

// unlabelled returns ctx with the label that was given before labelled. A body gets
// it: under another lock that it takes, the label of this one would be wrong.
func unlabelled(ctx context.Context, given string) context.Context {
	if lockfx.LabelFrom(ctx) == given {
		return ctx
	}
	return lockfx.WithLabel(ctx, given)
}
