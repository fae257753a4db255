package layered

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/lockfx/lockfx"
)

type timeoutKind uint8

const (
	timeoutNone timeoutKind = iota
	timeoutFails
	timeoutSucceeds
)

const defaultStale = 10 * time.Second

// settings is what the options of one call add up to.
type settings struct {
	locker    *Locker
	namespace string
	key       string
	keyed     bool // the key was given
	file      string
	dir       string
	at        place // chosen once the key is known
	scope     [layers]Mode
	timeout   time.Duration
	onTimeout timeoutKind
	stale     time.Duration

	predicate     any // nil, or func(context.Context, Call[I]) (bool, error)
	onCheckFailed any // nil, or func(context.Context, Call[I]) error

	faults []error
}

// defaults are the settings of a Locker without options.
func defaults() settings {
	return settings{scope: [...]Mode{On, Auto, Auto, Auto}, stale: defaultStale}
}

// newSettings adds up the options of one call.
func newSettings(opts []Option) *settings {
	locker := shared
	for _, o := range opts {
		if c, ok := o.(chosenLocker); ok && c.Locker != nil {
			locker = c.Locker
		}
	}
	s := locker.settings()
	s.locker = locker
	for i, o := range opts {
		s.add(i, o)
	}
	return &s
}

func (s *settings) add(i int, o Option) {
	if o == nil {
		s.faults = append(s.faults, fmt.Errorf("%w: option %d is nil", lockfx.ErrConfig, i+1))
		return
	}
	o.apply(s)
}

// finish completes the settings with what they need of the input, and returns all
// faults.
func finish[I any](s *settings, in I) (callbacks[I], error) {
	var c callbacks[I]
	s.callback(assign(s.predicate, &c.predicate), "layered.WithPredicate", in)
	if s.file != "" && s.scope[LayerFlock] == Auto {
		s.scope[LayerFlock] = On // whoever shares the file does not skip it
	}
	s.callback(assign(s.onCheckFailed, &c.onCheckFailed), "layered.WithOnCheckFailed", in)
	switch {
	case s.keyed:
	case s.file != "":
		s.key = s.file
	default:
		key, err := hashInput(in)
		if err != nil {
			s.fault("layered.WithKey", "is required, since the input has no stable hash: "+err.Error())
		}
		s.key = key
	}
	if s.scope[LayerFlock] != Off || s.scope[LayerPoll] != Off {
		s.at = s.place()
	}
	return c, errors.Join(s.faults...)
}

// callbacks are the callbacks of a call whose input is an I.
type callbacks[I any] struct {
	predicate     func(context.Context, Call[I]) (bool, error)
	onCheckFailed func(context.Context, Call[I]) error
}

// assign sets *to to from, and reports whether it could or from is nil.
func assign[F any](from any, to *F) bool {
	f, ok := from.(F)
	*to = f
	return ok || from == nil
}

func (s *settings) callback(fits bool, name string, in any) {
	if !fits {
		s.fault(name, fmt.Sprintf("must take a layered.Call of the input's type, which is %T", in))
	}
}

// fault notes that the option printed as text breaks rule.
func (s *settings) fault(text, rule string) {
	s.faults = append(s.faults, fmt.Errorf("%w: %s: %s", lockfx.ErrConfig, text, rule))
}

func (s *settings) pathArg(text func() string, path string) string {
	if path == "" {
		s.fault(text(), "must not be empty")
		return ""
	}
	if strings.IndexByte(path, 0) >= 0 {
		s.fault(text(), "must not contain NUL")
		return ""
	}
	full, err := filepath.Abs(path)
	if err != nil {
		s.fault(text(), "has no absolute path: "+err.Error())
	}
	return full
}
