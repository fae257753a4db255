package memoize

import (
	"context"
	"errors"
	"fmt"
)

var (
	// ErrReentrant says that a function called its own getter, directly or by way of other
	// getters. Waiting for the value would last for ever.
	ErrReentrant = errors.New("memoize: the function calls its own getter and would wait for itself")
	// ErrGoexit says that the function ended its goroutine by [runtime.Goexit], so there is
	// neither a value nor an error.
	ErrGoexit = errors.New("memoize: the function called runtime.Goexit")
	// ErrAbandoned says that every caller has left. It is the cause of the context that the
	// function was given.
	ErrAbandoned = errors.New("memoize: every caller has left")
)

// PanicError is what a getter panics with when its function did.
type PanicError struct {
	Value any    // what the function panicked with
	Stack []byte // of the function's goroutine, at the panic, as text for people
}

// Error returns the value and the stack.
func (e *PanicError) Error() string { return fmt.Sprintf("memoize: panic: %v\n\n%s", e.Value, e.Stack) }

// Unwrap returns the value if it is an error, and nil otherwise.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// ended returns nil while ctx is alive. Otherwise the error matches both ctx.Err()
// and the cause.
func ended(ctx context.Context) error {
	err := ctx.Err()
	if err == nil {
		return nil
	}
	cause := context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}
