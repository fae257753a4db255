package fxlock

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock/internal/faults"
	"github.com/lockfx/lockfx/internal/lifecycle"
)

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
	r.faults = append(r.faults, faults.New(text, rule))
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

// settle adds up the options of a run.
func (l *Lock) settle(opts []RunOption) (runSettings, error) {
	run, err := newRunSettings(opts)
	run = run.over(l.settings.run)
	if len(run.after) > 0 {
		err = errors.Join(err, fmt.Errorf("%w: fxlock.After is for a fxlock.Body, an OnStart or a Lead", lockfx.ErrConfig))
	}
	if err = errors.Join(err, run.check()); err != nil {
		return run, l.scopeError("check the options", err)
	}
	return run, nil
}
