package runscope

import (
	"errors"

	"go.uber.org/dig"
)

var (
	// ErrClosed says that the run which the scope belongs to is over.
	ErrClosed = errors.New("the scope is closed: its run is over")
	// ErrReentrant says that a constructor resolved by hand from the scope that was
	// building it. It would have waited for itself for ever.
	ErrReentrant = errors.New("a constructor can't resolve from the scope that is building it: take the value as a parameter")
)

// MissingError says that the scope does not hold what was asked for by hand.
type MissingError struct {
	Keys []Key
}

func (e *MissingError) Error() string { return "not bound in this scope: " + joinKeys(e.Keys) }

// CtorError says which per-run constructor gave an error or panicked.
type CtorError struct {
	Label string
	Err   error
}

func (e *CtorError) Error() string { return "constructor " + e.Label + ": " + e.Err.Error() }

// Unwrap returns what the constructor returned, or a [lockfx.PanicError].
func (e *CtorError) Unwrap() error { return e.Err }

// reason drops the outermost layer of an error of dig's Provide, which only says
// where the function was defined.
func reason(err error) error {
	if inner := errors.Unwrap(err); inner != nil {
		return inner
	}
	return err
}

// rootCause returns the first error in the chain that is not dig's own, or the
// last one. Unlike [dig.RootCause] it looks at each link by itself, so it stops at
// a constructor's error that wraps one of dig's.
func rootCause(err error) error {
	for {
		_, own := err.(dig.Error) //nolint:errorlint // one link at a time is the point
		inner := errors.Unwrap(err)
		if !own || inner == nil {
			return err
		}
		err = inner
	}
}
