package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/lifecycle"
)

var errBody = errors.New("the work failed")

// panicValue is compared by identity.
var panicValue = &struct{ why string }{"the work panicked"}

// bodies are the ways for a body to end.
var bodies = map[string]func() error{
	"returns nil":      func() error { return nil },
	"returns an error": func() error { return errBody },
	"panics":           func() error { panic(panicValue) },
	"exits":            func() error { runtime.Goexit(); return nil },
}

// releases are the ways for the store to release, and what the run reports then.
var releases = map[string]struct {
	answer answer
	fault  error
}{
	"confirmed": {always(true, nil), nil},
	"refused":   {always(false, nil), lockfx.ErrLost},
	"fails":     {always(true, errBoom), errBoom},
	"panics":    {once(func(context.Context) { panic(errBoom) }), errBoom},
	"hangs":     {never, lockfx.ErrTimeout},
	"exits":     {once(func(context.Context) { runtime.Goexit() }), nil},
}

// troubles are what can befall a lease under its body, and what the run reports.
var troubles = map[string]struct {
	renew  answer
	reason lockfx.Reason
	// dispose disposes of the lock under the body.
	dispose bool
}{
	"none":          {},
	"renew refused": {renew: always(false, nil), reason: lockfx.ReasonHeartbeatFailed},
	"renew fails":   {renew: always(true, errBoom), reason: lockfx.ReasonStoreError},
	"renew panics":  {renew: once(func(context.Context) { panic(errBoom) }), reason: lockfx.ReasonStoreError},
	"renew exits":   {renew: once(func(context.Context) { runtime.Goexit() }), reason: lockfx.ReasonStoreError},
	"expired":       {renew: never, reason: lockfx.ReasonExpired},
	"disposed of":   {dispose: true},
}

// Every way for a body to end meets every trouble and every way to release.
func TestBothLastLegsAlwaysRun(t *testing.T) {
	for bodyEnds, end := range bodies {
		for trouble, what := range troubles {
			for released, how := range releases {
				t.Run(fmt.Sprintf("body %s, %s, release %s", bodyEnds, trouble, released), func(t *testing.T) {
					inBubble(t, func(t *testing.T, r *rig) {
						r.store.renews(what.renew)
						r.store.releases(how.answer)
						var bodyCtx context.Context
						var hold *lifecycle.Hold
						disposal := make(chan error, 1)
						o := <-spawn(func() error {
							return r.Run(background, func(ctx context.Context, h *lifecycle.Hold) error {
								bodyCtx, hold = ctx, h
								if what.dispose {
									go func() { disposal <- r.Dispose(background) }()
								}
								if trouble != "none" {
									<-ctx.Done()
								}
								r.store.note("body")
								return end()
							})
						})
						asked := what.reason != lockfx.ReasonHeartbeatFailed
						legs := []string{"acquire", "body", "release 1"}
						if !asked {
							legs = legs[:2]
						}
						calls := slices.DeleteFunc(r.store.calls(""), func(call string) bool { return call == "renew 1" })
						if !slices.Equal(calls, legs) {
							t.Errorf("legs %q, want %q", calls, legs)
						}

						fault := how.fault
						var lost *lockfx.LostError
						if what.reason != 0 {
							fault = lockfx.ErrLost
							if !errors.As(context.Cause(bodyCtx), &lost) || lost.Key != key || lost.Token != 1 || lost.Reason != what.reason {
								t.Errorf("the body's context ended by %v", context.Cause(bodyCtx))
							}
						}
						checkEnd(t, o, bodyEnds, fault, released == "exits" && asked)
						if lost != nil && o.err != nil && !errors.Is(o.err, lost) {
							t.Errorf("%v is not the loss that the body heard of", o.err)
						}

						r.wantState(t, lockfx.StateReleased)
						if hold.State() != lockfx.StateReleased || hold.Held() || hold.Token() != 0 || bodyCtx.Err() == nil {
							t.Errorf("the hold after its run: %v, held %v, token %v", hold.State(), hold.Held(), hold.Token())
						}
						if lockfx.TokenFrom(bodyCtx) != 1 {
							t.Errorf("the context carries token %v", lockfx.TokenFrom(bodyCtx))
						}
						if what.dispose {
							if err := <-disposal; err != nil {
								t.Errorf("Dispose: %v", err)
							}
							if !errors.Is(context.Cause(bodyCtx), lockfx.ErrDisposed) {
								t.Errorf("the body's context ended by %v", context.Cause(bodyCtx))
							}
							return
						}
						r.store.renews(nil)
						r.store.releases(nil)
						if err := r.Run(background, func(context.Context, *lifecycle.Hold) error { return nil }); err != nil {
							t.Errorf("the next run: %v", err)
						}
					})
				})
			}
		}
	}
}

// checkEnd checks how a run ended, whose body ended as bodyEnds and which met fault
// besides. exits says that the release ended the goroutine, on top of all.
func checkEnd(t *testing.T, o outcome, bodyEnds string, fault error, exits bool) {
	t.Helper()
	switch {
	case exits || bodyEnds == "exits":
		if o.returned || o.panicked != nil {
			t.Errorf("%+v, want the goroutine to have ended", o)
		}
	case bodyEnds == "panics":
		if o.returned || o.panicked != any(panicValue) {
			t.Errorf("%+v, want the panic of the body", o)
		}
	case !o.returned:
		t.Errorf("%+v, want a return", o)
	case bodyEnds == "returns nil":
		if !errors.Is(o.err, fault) {
			t.Errorf("the error is %v, want %v", o.err, fault)
		}
	case fault == nil:
		if o.err != errBody { //nolint:errorlint // it must be the very same
			t.Errorf("the error is %v, want the body's own", o.err)
		}
	default:
		joined, ok := o.err.(interface{ Unwrap() []error })
		if !ok || len(joined.Unwrap()) != 2 {
			t.Fatalf("the error is %v, want two joined", o.err)
		}
		if all := joined.Unwrap(); all[0] != errBody || !errors.Is(all[1], fault) { //nolint:errorlint // it must be the very same
			t.Errorf("the errors are %v, want the body's own and %v", all, fault)
		}
	}
}

func TestTheContextOfABodyEndsBeforeTheRelease(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		var left context.Context
		r.store.releases(once(func(context.Context) {
			if left.Err() == nil {
				t.Error("what the body left running goes on while the lease is given back")
			}
		}))
		if err := r.Run(background, func(ctx context.Context, h *lifecycle.Hold) error {
			if ctx.Err() != nil || !h.Held() || h.Token() != 1 || h.Key() != key || r.Token() != 1 {
				t.Errorf("in the body: %v, held %v, token %v", ctx.Err(), h.Held(), h.Token())
			}
			left = ctx
			return nil
		}); err != nil {
			t.Error(err)
		}
	})
}

func TestABodyThatReturnsItsLossReturnsItOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.store.renews(always(false, nil))
		var own error
		err := r.Run(background, func(ctx context.Context, _ *lifecycle.Hold) error {
			<-ctx.Done()
			own = fmt.Errorf("write: %w", context.Cause(ctx))
			return own
		})
		if err != own { //nolint:errorlint // it must be the very same
			t.Errorf("Run = %v, want %v", err, own)
		}
	})
}

// A lock in a lock: what befell the inner one is no news of the outer one.
func TestTheLossOfAnotherLockDoesNotHideOurs(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.store.renews(always(false, nil))
		inner := &lockfx.LostError{Key: "inner", Token: 7, Reason: lockfx.ReasonExpired}
		err := r.Run(background, func(ctx context.Context, _ *lifecycle.Hold) error {
			<-ctx.Done()
			return inner
		})
		if all, ok := err.(interface{ Unwrap() []error }); !ok || len(all.Unwrap()) != 2 || all.Unwrap()[0] != error(inner) { //nolint:errorlint // it must be the join itself
			t.Errorf("Run = %v, want both losses", err)
		}
	})
}

func TestARunIsNotReleasedUnderItsBody(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		if err := r.Run(background, func(_ context.Context, h *lifecycle.Hold) error {
			if ok, err := r.Release(background); ok || !errors.Is(err, lockfx.ErrNotIdle) {
				t.Errorf("Release = %v, %v", ok, err)
			}
			if !h.Held() {
				t.Error("the lease was released under its body")
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
		r.wantCalls(t, "acquire", "release 1")
	})
}

func TestAHoldNeverShowsTheNextOne(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		var first *lifecycle.Hold
		note := func(_ context.Context, h *lifecycle.Hold) error { first = h; return nil }
		if err := r.Run(background, note); err != nil {
			t.Fatal(err)
		}
		if err := r.Run(background, func(_ context.Context, second *lifecycle.Hold) error {
			if first.Held() || first.Token() != 0 || first.State() != lockfx.StateReleased {
				t.Errorf("the first hold shows token %v, %v", first.Token(), first.State())
			}
			if !second.Held() || second.Token() != 2 {
				t.Errorf("the second hold shows token %v", second.Token())
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	})
}

func TestManyRunsAtOnceNeverOverlap(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		inside, ran := 0, 0
		for range 20 {
			go func() {
				for range 50 {
					err := r.Run(background, func(context.Context, *lifecycle.Hold) error {
						if inside++; inside != 1 {
							t.Errorf("%d bodies at once", inside)
						}
						time.Sleep(time.Millisecond)
						inside--
						ran++
						return nil
					})
					var not *lockfx.NotAcquiredError
					if errors.As(err, &not) && not.Self {
						time.Sleep(time.Millisecond)
					} else if err != nil {
						t.Error(err)
					}
				}
			}()
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if ran < 50 {
			t.Errorf("%d bodies ran", ran)
		}
	})
}
