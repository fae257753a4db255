package fxlock

import (
	"fmt"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/lifecycle"
	"github.com/lockfx/lockfx/internal/waiting"
)

// Wait makes a run wait for the lock, for at most limit; 0 is one try, which is the
// default. Callers of one *Lock wait in order, and only the first of them talks to
// the store. Where the store can wake it ([lockfx.Watcher]) it asks at the end of the
// lease in its way, and once a minute; elsewhere about once a second.
//
// The limit is for the waiting alone: it is over when the body begins. It is apart
// from the ttl ([WithTTL]) and from the time limit of one call of the store
// ([WithCallTimeout]). When it is over, the error matches [lockfx.ErrTimeout] and
// what was in the way: [lockfx.ErrNotAcquired], or [lockfx.ErrStore] if the store
// could not be reached. When the context of the run or the application ends first, it
// matches what ended the waiting instead of ErrTimeout. An outage on the way is told
// once, by [lockfx.EventFailed], and the store is asked again, ever less often.
func Wait(limit time.Duration) LockOrRunOption {
	text := "fxlock.Wait(" + limit.String() + ")"
	return bothOption(text, func(r *runSettings) {
		if limit < 0 {
			r.fault(text, "must not be negative; fxlock.WaitForever has no limit")
			return
		}
		if limit > 0 && limit < time.Millisecond {
			r.fault(text, brokenBy(limit))
			return
		}
		r.wait.set(limit)
	})
}

// WaitForever is [Wait] without a limit: the waiting ends with the context of the
// run, or with the stop of the application.
func WaitForever() LockOrRunOption {
	return bothOption("fxlock.WaitForever()", func(r *runSettings) { r.wait.set(waiting.Forever) })
}

// MinHold keeps the key from everybody for d from when the run asked for it, even if
// the body is done earlier and whatever came of it: the lease is then set to the
// rest of d and not renewed. Without it a short job runs once on each of several
// hosts whose clocks differ, one after the other. d should exceed that difference,
// and be less than the time from one run to the next. If the rest is shorter than the
// store's leases can be, the key is kept a little longer. Those who are refused
// meanwhile see the label of the run that is over. The lease that is asked for is never
// shorter than the rest of d, so a run whose process dies keeps the key as well: the others
// then wait for d instead of the ttl.
//
// A run whose body did not begin, since it was skipped ([If]) or its scope could not
// be built, keeps nothing.
func MinHold(d time.Duration) LockOrRunOption {
	return holdOption("fxlock.MinHold", d, func(r *runSettings) { r.minHold.set(d) })
}

// MaxHold ends a run d after it asked for the lock: the lease is lost with
// [lockfx.ReasonMaxHold], so the body's context is cancelled, and the key is
// released when the body has returned.
func MaxHold(d time.Duration) LockOrRunOption {
	return holdOption("fxlock.MaxHold", d, func(r *runSettings) { r.maxHold.set(d) })
}

// WithCallTimeout bounds each single call of the store. Without it a request or a
// heartbeat is bounded by the lease, and a release by [WithReleaseTimeout].
func WithCallTimeout(d time.Duration) Option {
	return positive("fxlock.WithCallTimeout", d, func(s *settings) { s.callTimeout = d })
}

func holdOption(name string, d time.Duration, set func(*runSettings)) LockOrRunOption {
	text := name + "(" + d.String() + ")"
	return bothOption(text, func(r *runSettings) {
		if rule := brokenBy(d); rule != "" {
			r.fault(text, rule)
			return
		}
		set(r)
	})
}

// bothOption is an option that sets the same thing for a lock and for a run.
func bothOption(text string, set func(*runSettings)) LockOrRunOption {
	return lockOrRunOption{
		option{text, func(s *settings) {
			set(&s.run)
			s.faults, s.run.faults = append(s.faults, s.run.faults...), nil
		}},
		set,
	}
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
