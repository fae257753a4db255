// Package faults words the errors of a configuration: each of them matches
// [lockfx.ErrConfig], and each line of a message says by itself which option it is about,
// also where many faults are joined.
package faults

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/lockfx/lockfx"
)

// New says that the option printed as text breaks rule.
func New(text, rule string) error { return fmt.Errorf("%w: %s: %s", lockfx.ErrConfig, text, rule) }

// Of is the fault err of the option printed as text, or its faults.
func Of(text string, err error) error {
	return each(err, func(err error) error {
		if errors.Is(err, lockfx.ErrConfig) {
			return fmt.Errorf("%s: %w", text, err)
		}
		return fmt.Errorf("%w: %s: %w", lockfx.ErrConfig, text, err)
	})
}

// At puts prefix before each of the faults that err joins.
func At(prefix string, err error) error {
	return each(err, func(err error) error { return fmt.Errorf("%s: %w", prefix, err) })
}

// OfDuration returns the rule of durations that d breaks, or "".
func OfDuration(d time.Duration) string {
	switch {
	case d <= 0:
		return "must be greater than 0"
	case d < time.Millisecond:
		return "must be at least 1ms; is its unit missing?"
	}
	return ""
}

var joinedType = reflect.TypeOf(errors.Join(lockfx.ErrConfig))

// each maps the errors that err joins, or err itself.
func each(err error, f func(error) error) error {
	if reflect.TypeOf(err) != joinedType {
		return f(err)
	}
	var all []error
	for _, one := range err.(interface{ Unwrap() []error }).Unwrap() {
		all = append(all, each(one, f))
	}
	return errors.Join(all...)
}
