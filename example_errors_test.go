package lockfx_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

// verdict is what a caller does about the error of a run.
func verdict(err error) string {
	switch {
	case err == nil:
		return "done"
	case errors.Is(err, lockfx.ErrNotIdle):
		return "this process is at it already"
	case errors.Is(err, lockfx.ErrNotAcquired):
		return "somebody else does it"
	case errors.Is(err, lockfx.ErrTimeout):
		return "waited long enough"
	case errors.Is(err, lockfx.ErrSkipped):
		return "nothing to do"
	case errors.Is(err, lockfx.ErrLost), errors.Is(err, lockfx.ErrStaleToken):
		return "somebody else may have taken over: look before you write again"
	case errors.Is(err, lockfx.ErrDisposed):
		return "shutting down"
	case errors.Is(err, lockfx.ErrFenceRegressed), errors.Is(err, lockfx.ErrBadGrant):
		return "the store broke its contract: call somebody"
	case errors.Is(err, lockfx.ErrStore):
		return "the store is down: try again"
	case errors.Is(err, lockfx.ErrConfig):
		return "a mistake of ours"
	}
	return "the work failed"
}

// Every error of a run matches a sentinel, or is the work's own.
func Example_errors() {
	confirmed := time.Date(2026, 12, 1, 10, 0, 3, 0, time.UTC)
	for _, err := range []error{
		&lockfx.NotAcquiredError{Key: "nightly", HeldBy: "web-2", RetryAfter: 12 * time.Second},
		&lockfx.NotAcquiredError{Key: "nightly", Self: true},
		&lockfx.SkippedError{Key: "nightly", Acquired: true},
		&lockfx.LostError{Key: "nightly", Token: 7, Reason: lockfx.ReasonMaxHold},
		&lockfx.LostError{
			Key: "nightly", Token: 7, Reason: lockfx.ReasonExpired,
			Err:         fmt.Errorf("renew %q: %w: no route to host", "nightly", lockfx.ErrStore),
			SilentSince: confirmed, At: confirmed.Add(7 * time.Second),
		},
		&lockfx.ScopeError{Key: "nightly", Op: "build the body's parameters", Err: lockfx.ErrConfig},
	} {
		fmt.Println(err)
		fmt.Println("   ", verdict(err))
	}
	// Output:
	// acquire "nightly": held by web-2, for at most 12s
	//     somebody else does it
	// acquire "nightly": this lock is in use by another caller in this process
	//     this process is at it already
	// run "nightly": skipped: the condition said no under the lock
	//     nothing to do
	// hold "nightly": lease lost: max hold (token 7)
	//     somebody else may have taken over: look before you write again
	// hold "nightly": lease lost: expired (token 7): not confirmed since 10:00:03 (7s): renew "nightly": store failed: no route to host
	//     somebody else may have taken over: look before you write again
	// run "nightly": build the body's parameters: invalid configuration
	//     a mistake of ours
}

// table refuses writes whose token is none, or smaller than one that it has seen: only
// the resource can stop a writer that was paused past its lease.
type table struct{ seen lockfx.Token }

func (t *table) write(ctx context.Context) error {
	fence := lockfx.TokenFrom(ctx)
	if !fence.Valid() || fence < t.seen {
		return fmt.Errorf("write: %w", lockfx.ErrStaleToken)
	}
	t.seen = fence
	return nil
}

func ExampleHolder() {
	store, target := fxlock.NewMemoryStore(), new(table)
	lock, err := fxlock.New(fxlock.WithKey("nightly"), fxlock.WithTTL(30*time.Second), fxlock.WithStore(store))
	if err != nil {
		fmt.Println(err)
		return
	}
	var stale context.Context
	var kept lockfx.Holder
	for range 2 {
		err = lock.Do(context.Background(), func(ctx context.Context, h lockfx.Holder) error {
			fmt.Println(h.Key(), h.State(), h.Held(), h.Token() == lockfx.TokenFrom(ctx), time.Until(h.Deadline()) > 29*time.Second)
			if stale == nil {
				stale, kept = ctx, h
			}
			return target.write(ctx)
		})
		fmt.Println(verdict(err))
	}
	fmt.Println(kept.Held(), kept.Token()) // it never shows a later run
	fmt.Println(target.write(stale))
	fmt.Println(new(table).write(context.Background())) // no run, no token
	// Output:
	// nightly held true true true
	// done
	// nightly held true true true
	// done
	// false 0
	// write: stale fencing token
	// write: stale fencing token
}
