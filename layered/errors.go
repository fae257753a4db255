package layered

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/lockfx/lockfx"
)

// ErrLockUnavailable says that the poll layer is On, flock is held, and yet another
// holds the directory of the poll layer. Flock has already put all who use it in
// order, so this one does not use it, and waiting for it could last for ever.
var ErrLockUnavailable = errors.New("lock unavailable")

// TimeoutError says that the time set by WithTimeout is over. It matches
// [lockfx.ErrTimeout].
type TimeoutError struct {
	Layer  Layer // the layer that was waited for
	Key    string
	Waited time.Duration // for all layers
}

func (e *TimeoutError) Error() string {
	return prefix(e.Key, e.Layer) + "timed out after " + e.Waited.String()
}

// Is reports whether target is [lockfx.ErrTimeout].
func (e *TimeoutError) Is(target error) bool { return target == lockfx.ErrTimeout }

// LayerError says which layer could not be acquired or given back, and why.
type LayerError struct {
	Op    string // "acquire" or "release"
	Layer Layer
	Key   string
	Err   error
}

func (e *LayerError) Error() string {
	return e.Op + " " + strconv.Quote(e.Key) + ": " + e.Layer.String() + " layer: " + e.Err.Error()
}

// Unwrap returns the cause. If the caller's context ended, that matches its error and
// its cause.
func (e *LayerError) Unwrap() error { return e.Err }

// LostError says that a lock was lost while the action ran: the poll layer was not
// refreshed in time or taken by another, or the file of the flock layer is not at its path
// any more. It matches [lockfx.ErrLost], and is the cause of the action's context.
type LostError struct {
	Layer Layer
	Key   string
	Err   error
}

func (e *LostError) Error() string {
	return "hold " + strconv.Quote(e.Key) + ": " + e.Layer.String() + " layer: lock lost: " + e.Err.Error()
}

// Is reports whether target is [lockfx.ErrLost].
func (e *LostError) Is(target error) bool { return target == lockfx.ErrLost }

// Unwrap returns the cause.
func (e *LostError) Unwrap() error { return e.Err }

// endOf returns what matches the error of ctx, which has ended, and its cause.
func endOf(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// endedBy reports whether err is the end of ctx, not a fault of a layer.
func endedBy(ctx context.Context, err error) bool {
	return ctx.Err() != nil && errors.Is(err, context.Cause(ctx))
}

// ended returns why ctx, which is that of v's call, has ended: by the caller's, or by
// something of ours.
func (v *visit) ended(ctx context.Context) error {
	if v.caller.Err() != nil {
		return endOf(v.caller)
	}
	return context.Cause(ctx)
}

func prefix(key string, l Layer) string {
	return "acquire " + strconv.Quote(key) + ": " + l.String() + " layer: "
}
