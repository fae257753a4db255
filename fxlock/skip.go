package fxlock

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/lockfx/lockfx"
)

// SkipOn makes it no error that a run did not begin because of one of reasons: the run
// is skipped, and returns nil and zero values. The reasons can be
//
//   - [lockfx.ErrNotAcquired]: another holds the lock, also after a [Wait]; for schedulers
//     that should not report "another replica runs this" as a failure.
//   - [lockfx.ErrSkipped]: [If] said no.
//
// What the body itself returns is never skipped, even if it matches: it may be the refusal
// of another lock, after half of the work. Nor is an outage, a wait that was cancelled or
// ended by the stop of the application, or a run inside a run of the same lock.
//
// A run that is skipped is a [lockfx.EventSkipped], whose Err is what SkipOn left out.
func SkipOn(reasons ...error) LockOrRunOption {
	names := make([]string, len(reasons))
	var skip skips
	known := len(reasons) > 0
	for i, reason := range reasons {
		switch reason {
		case lockfx.ErrNotAcquired: //nolint:errorlint // the sentinels themselves are meant
			names[i], skip.held = "lockfx.ErrNotAcquired", true
		case lockfx.ErrSkipped:
			names[i], skip.unwanted = "lockfx.ErrSkipped", true
		default:
			names[i], known = fmt.Sprintf("%v", reason), false
		}
	}
	text := "fxlock.SkipOn(" + strings.Join(names, ", ") + ")"
	return bothOption(text, func(r *runSettings) {
		if !known {
			r.fault(text, "takes lockfx.ErrNotAcquired, lockfx.ErrSkipped, or both")
		}
		r.skipOn.set(skip)
	})
}

// skips says which reasons not to begin are no error.
type skips struct{ held, unwanted bool }

// notBegun ends a run whose body did not begin because of reason, and returns what its
// caller gets. failure is what else went wrong.
func (l *Lock) notBegun(skip skips, reason, failure error) error {
	unwanted := errors.Is(reason, lockfx.ErrSkipped)
	skipped := skip.unwanted && unwanted || skip.held && contention(reason)
	if unwanted || skipped {
		l.machine.Load().Announce(lockfx.Event{Kind: lockfx.EventSkipped, Err: reason})
	}
	if skipped {
		return failure
	}
	return join(reason, failure)
}

// contention reports whether another has the lock, and nothing else is wrong.
func contention(err error) bool {
	var refusal *lockfx.NotAcquiredError
	nested := errors.As(err, &refusal) && refusal.Nested
	return errors.Is(err, lockfx.ErrNotAcquired) && !nested && !errors.Is(err, context.Canceled) && !errors.Is(err, lockfx.ErrDisposed)
}
