package lockfx

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Sentinels, to be matched with [errors.Is].
var (
	// ErrNotAcquired: another holds the key, or this lock is busy.
	ErrNotAcquired = errors.New("not acquired")
	// ErrNotIdle: the lock is already acquiring, held, releasing or lost.
	ErrNotIdle = errors.New("lock is not idle")
	// ErrLost: the lease ended before its holder released it.
	ErrLost = errors.New("lease lost")
	// ErrDisposed: the lock, or the application that owns it, has stopped.
	ErrDisposed = errors.New("lock is disposed")
	// ErrFenceRegressed: a store issued a token that does not exceed the last one.
	ErrFenceRegressed = errors.New("fencing token did not rise")
	// ErrBadGrant: a store answered with something that is no grant and no refusal.
	ErrBadGrant = errors.New("malformed grant")
	// ErrStore: the store failed, panicked or could not be reached.
	ErrStore = errors.New("store failed")
	// ErrStaleToken: a resource refused a token smaller than one it has seen.
	ErrStaleToken = errors.New("stale fencing token")
	// ErrConfig: an option, a key or a ttl breaks a rule.
	ErrConfig = errors.New("invalid configuration")
	// ErrSkipped: a condition said that the work is not wanted.
	ErrSkipped = errors.New("skipped")
	// ErrTimeout: a limit that the caller set for waiting is over.
	ErrTimeout = errors.New("timed out")
)

// LostError says which lease was lost, and why. It matches [ErrLost], and is the
// cause of the context of a run whose lease was lost.
type LostError struct {
	Key    string
	Token  Token
	Reason Reason
	// Err is the last failure of the store, if one led to the loss: what it said, or that
	// it did not answer. It matches [ErrStore]. Nil when the store is not to blame.
	Err error
	// SilentSince is when the store last confirmed the lease, if Err is set.
	SilentSince time.Time
	// At is when the loss was noticed.
	At time.Time
}

func (e *LostError) Error() string {
	msg := "hold " + strconv.Quote(e.Key) + ": lease lost: " + e.Reason.String() + " (token " + e.Token.String() + ")"
	if e.Err != nil {
		msg += silence(e.SilentSince, e.At) + ": " + e.Err.Error()
	}
	return msg
}

// silence says for how long a store has not confirmed a lease.
func silence(since, now time.Time) string {
	return ": not confirmed since " + since.Format(time.TimeOnly) + " (" + forPeople(now.Sub(since)) + ")"
}

// Is reports whether target is [ErrLost], or matches Err. It never matches [ErrTimeout],
// which says that a wait ended without the lock: here the work had begun.
func (e *LostError) Is(target error) bool {
	return target == ErrLost || target != ErrTimeout && errors.Is(e.Err, target)
}

// As finds target in Err.
func (e *LostError) As(target any) bool { return errors.As(e.Err, target) }

// NotAcquiredError says who was in the way. It matches [ErrNotAcquired] and, when
// Self is true, [ErrNotIdle].
type NotAcquiredError struct {
	Key        string
	HeldBy     string        // the holder's label, if the store knows it
	RetryAfter time.Duration // how long its lease can still last, if the store knows it
	Self       bool          // this very lock is in use in this process
	Nested     bool          // it is in use by the run that asks: a lock is not reentrant. Self is true too
}

func (e *NotAcquiredError) Error() string {
	msg := "acquire " + strconv.Quote(e.Key) + ": "
	switch {
	case e.Nested:
		return msg + "the run that asks holds this lock itself, and a lock is not reentrant"
	case e.Self:
		return msg + "this lock is in use by another caller in this process"
	case e.HeldBy != "":
		msg += "held by " + e.HeldBy
	default:
		msg += "held by another"
	}
	if e.RetryAfter > 0 {
		msg += ", for at most " + forPeople(e.RetryAfter)
	}
	return msg
}

// forPeople rounds d to a readable precision.
func forPeople(d time.Duration) string {
	if d > time.Second {
		d = d.Round(time.Millisecond)
	}
	return d.String()
}

// Is reports whether target is [ErrNotAcquired], or [ErrNotIdle] when Self is true.
func (e *NotAcquiredError) Is(target error) bool {
	return target == ErrNotAcquired || e.Self && target == ErrNotIdle
}

// SkippedError says that a run was skipped because its condition was false. It matches
// [ErrSkipped].
type SkippedError struct {
	Key string
	// Acquired says when the condition was evaluated: false before waiting for the lock,
	// true when the lock was held.
	Acquired bool
}

func (e *SkippedError) Error() string {
	when := "before waiting for the lock"
	if e.Acquired {
		when = "under the lock"
	}
	return "run " + strconv.Quote(e.Key) + ": skipped: the condition said no " + when
}

// Is reports whether target is [ErrSkipped].
func (e *SkippedError) Is(target error) bool { return target == ErrSkipped }

// ScopeError says that the scope of a run could not be built or torn down, or that the
// lease was lost, or the run's context ended, before the body began. Unless it is the
// teardown that failed, the body did not run.
type ScopeError struct {
	Key string
	// Op is the leg that failed, such as "resolve the body's parameters".
	Op  string
	Err error
}

func (e *ScopeError) Error() string {
	return "run " + strconv.Quote(e.Key) + ": " + e.Op + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *ScopeError) Unwrap() error { return e.Err }

// PanicError is a panic that was met in a store, in a constructor or a hook of a run, or in
// a callback, and that became an error. Its text ends with the stack.
type PanicError struct {
	Value any    // what was given to panic
	Stack []byte // of the goroutine that panicked, as runtime/debug.Stack prints it
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v\n\n%s", e.Value, e.Stack) }

// Unwrap returns Value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
