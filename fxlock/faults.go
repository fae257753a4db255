package fxlock

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/lockfx/lockfx"
)

// fault notes that the option printed as text breaks rule.
func (s *settings) fault(text, rule string) {
	s.faults = append(s.faults, fmt.Errorf("%w: %s: %s", lockfx.ErrConfig, text, rule))
}

func (s *settings) faultErr(text string, err error) { s.faults = append(s.faults, faultOf(text, err)) }

// faultOf is the fault err of the option printed as text, or its faults.
func faultOf(text string, err error) error {
	return eachFault(err, func(err error) error {
		if errors.Is(err, lockfx.ErrConfig) {
			return fmt.Errorf("%s: %w", text, err)
		}
		return fmt.Errorf("%w: %s: %w", lockfx.ErrConfig, text, err)
	})
}

// brokenBy returns the rule of durations that d breaks, or "".
func brokenBy(d time.Duration) string {
	switch {
	case d <= 0:
		return "must be greater than 0"
	case d < time.Millisecond:
		return "must be at least 1ms; is its unit missing?"
	}
	return ""
}

// at puts prefix before each of the faults that err joins: every line of a message
// says by itself what it is about.
func at(prefix string, err error) error {
	return eachFault(err, func(err error) error { return fmt.Errorf("%s: %w", prefix, err) })
}

var joinedType = reflect.TypeOf(errors.Join(lockfx.ErrConfig))

// eachFault maps the errors that err joins, or err itself.
func eachFault(err error, f func(error) error) error {
	if reflect.TypeOf(err) != joinedType {
		return f(err)
	}
	var all []error
	for _, one := range err.(interface{ Unwrap() []error }).Unwrap() {
		all = append(all, eachFault(one, f))
	}
	return errors.Join(all...)
}
