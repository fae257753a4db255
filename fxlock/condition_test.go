package fxlock_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/fx"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

// wanted is a value of an application that a condition asks.
type wanted struct{ answers []bool }

// next returns the next answer; the last one is for ever.
func (w *wanted) next() bool {
	answer := w.answers[0]
	if len(w.answers) > 1 {
		w.answers = w.answers[1:]
	}
	return answer
}

func TestIf_IsEvaluatedBeforeWaitingAndUnderTheLock(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var j journal
		store := newSpyStore(&j)
		release := holding(t, newLock(t, newSpyStore(new(journal))))
		defer release()
		lock := newLock(t, store)
		err := lock.Run(t.Context(), func() { j.add("body") }, fxlock.If(func(ctx context.Context) bool {
			j.add("asked, held %v, token %v", lock.Held(), lockfx.TokenFrom(ctx) != 0)
			return true
		}))
		noError(t, err)
		j.expect(t, "asked, held false, token false", "acquire", "asked, held true, token true", "body", "release")
	})
}

func TestIf_FalseBeforeWaitingAsksNoStore(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := newTallyStore()
		lock := newLock(t, store)
		err := lock.Run(t.Context(), func() { t.Error("the body ran") }, fxlock.WaitForever(),
			fxlock.If(func() bool { return false }))
		var skip *lockfx.SkippedError
		if !errors.As(err, &skip) || skip.Acquired || skip.Key != key || !errors.Is(err, lockfx.ErrSkipped) {
			t.Errorf("err = %v", err)
		}
		wantText(t, err, `run "nightly": skipped: the condition said no before waiting for the lock`)
		if store.asked() != 0 {
			t.Errorf("the store was asked %d times", store.asked())
		}
	})
}

func TestIf_FalseUnderTheLockReleases(t *testing.T) {
	for _, ok := range []bool{false, true} {
		var j journal
		store := newSpyStore(&j)
		lock := newLock(t, store, fxlock.MinHold(time.Hour), fxlock.Observer(func(e lockfx.Event) {
			if e.Kind == lockfx.EventSkipped {
				j.add("%v, free %v", e.Err, store.free())
			}
		}))
		w := &wanted{[]bool{true, false}}
		opts := []fxlock.RunOption{fxlock.If(w.next)}
		if ok {
			opts = append(opts, fxlock.SkipOn(lockfx.ErrSkipped))
		}
		err := lock.Run(t.Context(), func() { t.Error("the body ran") }, opts...)
		if ok {
			noError(t, err)
		} else {
			wantIs(t, err, lockfx.ErrSkipped)
			wantText(t, err, `run "nightly": skipped: the condition said no under the lock`)
		}
		j.expect(t, "acquire", "release", `run "nightly": skipped: the condition said no under the lock, free true`)
	}
}

// What else went wrong is not hidden by the skipping.
func TestIf_SkippedRunReportsAFailedRelease(t *testing.T) {
	store := newSpyStore(new(journal))
	store.release = func() (bool, error) { return false, errWhy }
	lock := newLock(t, store)
	run := func(opts ...fxlock.RunOption) error {
		w := &wanted{[]bool{true, false}}
		_, _ = store.Break(t.Context(), key)
		return lock.Run(t.Context(), func() {}, append(opts, fxlock.If(w.next))...)
	}
	wantIs(t, run(), lockfx.ErrSkipped, errWhy)
	err := run(fxlock.SkipOn(lockfx.ErrSkipped))
	wantIs(t, err, errWhy)
	if errors.Is(err, lockfx.ErrSkipped) {
		t.Errorf("it is no skip: %v", err)
	}
}

// A condition that fails ends the run: nothing was done that the key should be kept for.
func TestIf_ErrorsAndPanicsEndTheRun(t *testing.T) {
	fails := map[string]func() (bool, error){
		"an error": func() (bool, error) { return true, errWhy },
		"a panic":  func() (bool, error) { panic(errWhy) },
		"an exit":  func() (bool, error) { runtime.Goexit(); return true, nil },
	}
	for name, fail := range fails {
		for leg := range 2 {
			store := newSpyStore(new(journal))
			lock := newLock(t, store, fxlock.MinHold(time.Hour), fxlock.SkipOn(lockfx.ErrSkipped),
				fxlock.Observer(func(e lockfx.Event) {
					if e.Kind == lockfx.EventSkipped {
						t.Error("it was not skipped")
					}
				}))
			asked := 0
			e := endingOf(func() error {
				return lock.Run(t.Context(), func() { t.Error("the body ran") }, fxlock.If(func() (bool, error) {
					if asked++; asked <= leg {
						return true, nil
					}
					return fail()
				}))
			})
			if name == "an error" {
				wantIs(t, e.err, errWhy)
				wantText(t, e.err, `run "nightly": evaluate the condition: `)
			} else if e.panics == nil && !e.exited {
				t.Errorf("%s in leg %d is gone: %v", name, leg, e.err)
			}
			if !store.free() || asked != leg+1 {
				t.Errorf("%s in leg %d: the key is free: %v; asked %d times", name, leg, store.free(), asked)
			}
			noError(t, lock.Do(t.Context(), workNothing))
		}
	}
}

type (
	conditionJob  func(context.Context) error
	conditionJob2 func(context.Context) error
	conditionIn   func(context.Context, *inputOfCall) error
	inputOfCall   struct{}
)

// The condition of a body has the application's values, and one of the lock serves all
// bodies that have none of their own.
func TestIf_OfABodyTakesValuesOfTheApplication(t *testing.T) {
	lockOf, own := &wanted{[]bool{false}}, &wanted{[]bool{true}}
	ran := 0
	var first conditionJob
	var second conditionJob2
	started(t, fxlock.Module(key, fxlock.WithStore(fxlock.NewMemoryStore()),
		fxlock.Body[conditionJob](func() error { ran++; return nil }),
		fxlock.Body[conditionJob2](func() error { ran += 10; return nil }, fxlock.If(func(in struct {
			fx.In
			Own   *wanted `name:"own"`
			Ctx   context.Context
			Never *inputOfCall `optional:"true"`
		},
		) bool {
			return in.Own.next() && in.Ctx != nil && in.Never == nil
		})),
		fxlock.If((*wanted).next), fxlock.SkipOn(lockfx.ErrSkipped)),
		fx.Supply(lockOf, fx.Annotate(own, fx.ResultTags(`name:"own"`))), fx.Populate(&first, &second))
	noError(t, first(t.Context()))
	noError(t, second(t.Context()))
	if ran != 10 {
		t.Errorf("ran is %d", ran)
	}
	lockOf.answers = []bool{true}
	noError(t, first(t.Context()))
	if ran != 11 {
		t.Errorf("ran is %d", ran)
	}
}

// Others take what is shared.
func TestIf_OfARunTakesSharedValues(t *testing.T) {
	w := &wanted{[]bool{true, false}}
	store := newSpyStore(new(journal))
	lock := lockIn(t, store, options(fxlock.Share[*wanted](), fxlock.If((*wanted).next)), fx.Supply(w))
	for range 2 {
		w.answers = []bool{true, false}
		wantIs(t, lock.Run(t.Context(), func() { t.Error("the body ran") }), lockfx.ErrSkipped)
	}
	noError(t, lock.Do(t.Context(), workNothing, fxlock.If(func() bool { return true }))) // it wins over the lock's

	lock = lockIn(t, store, nil, fx.Supply(w))
	err := lock.Do(t.Context(), workNothing, fxlock.If((*wanted).next))
	wantIs(t, err, lockfx.ErrConfig)
	wantText(t, err, "*fxlock_test.wanted does not reach it: add fxlock.Share[*fxlock_test.wanted]() to fxlock.Module(")
}

// What only a run has can't be asked for before there is one.
func TestIf_RejectsRunOnlyParameters(t *testing.T) {
	module := func(opts ...fxlock.Option) error {
		return fx.New(fx.NopLogger, fx.Supply(&inputOfCall{}),
			fxlock.Module(key, append(opts, fxlock.WithStore(fxlock.NewMemoryStore()))...)).Err()
	}
	body := func() error { return nil }
	perRun := fxlock.PerRun(func(lockfx.Token) *wanted { return nil })
	for name, test := range map[string]struct {
		err  error
		part string
	}{
		"a token, of the lock": {module(fxlock.If(func(lockfx.Token) bool { return true })), "takes lockfx.Token"},
		"a holder, of a body": {
			module(fxlock.Body[conditionJob](body, fxlock.If(func(lockfx.Holder) bool { return true }))),
			"takes lockfx.Holder",
		},
		"a value of a run, of the lock": {module(perRun, fxlock.If((*wanted).next)), "takes *fxlock_test.wanted"},
		"an input, of the lock": {
			module(fxlock.If(func(*inputOfCall) bool { return true }), fxlock.Body[conditionIn](func(*inputOfCall) error { return nil })),
			"takes *fxlock_test.inputOfCall",
		},
		"a lifecycle, of two bodies": {
			module(fxlock.Body[conditionJob](body), fxlock.Body[conditionJob2](body), fxlock.If(func(fx.Lifecycle) bool { return true })),
			"takes fx.Lifecycle",
		},
		"a scope, of a run": {
			newLock(t, fxlock.NewMemoryStore()).Do(t.Context(), workNothing, fxlock.If(func(*fxlock.Scope) bool { return true })),
			"takes *fxlock.Scope",
		},
	} {
		t.Run(name, func(t *testing.T) {
			wantIs(t, test.err, lockfx.ErrConfig)
			wantText(t, test.err, "fxlock.If(", test.part, "which only a run binds")
			if test.err != nil && strings.Count(test.err.Error(), test.part) != 1 {
				t.Errorf("it is not reported once: %v", test.err)
			}
		})
	}
	_, err := fxlock.New(fxlock.WithKey(key), fxlock.WithTTL(ttl), fxlock.WithStore(fxlock.NewMemoryStore()), fxlock.If((*wanted).next))
	wantIs(t, err, lockfx.ErrConfig)
	wantText(t, err, "*fxlock_test.wanted does not reach it: only fxlock.Module knows an application")
}

func TestIf_RejectsMistakes(t *testing.T) {
	for name, test := range map[string]struct {
		fn   any
		part string
	}{
		"nil":          {nil, "must be a function"},
		"nil func":     {(func() bool)(nil), "must be a function"},
		"annotated":    {fx.Annotate(func(string) bool { return true }, fx.ParamTags(`name:"a"`)), "an fx.In struct tags parameters"},
		"not a func":   {7, "must be a function"},
		"no result":    {func() {}, "must return a bool, or a bool and an error"},
		"not a bool":   {func() error { return nil }, "must return a bool, or a bool and an error"},
		"not an error": {func() (bool, bool) { return true, true }, "must return a bool, or a bool and an error"},
		"too many":     {func() (bool, error, error) { return true, nil, nil }, "must return a bool, or a bool and an error"},
	} {
		t.Run(name, func(t *testing.T) {
			err := fx.New(fx.NopLogger, fxlock.Module(key, fxlock.WithStore(fxlock.NewMemoryStore()),
				fxlock.Body[conditionJob](func() error { return nil }), fxlock.If(test.fn))).Err()
			wantIs(t, err, lockfx.ErrConfig)
			wantText(t, err, "fxlock.If(", test.part)
			if err != nil && strings.Count(err.Error(), test.part) != 1 {
				t.Errorf("it is not told once: %v", err)
			}
			wantText(t, newLock(t, fxlock.NewMemoryStore()).Do(t.Context(), workNothing, fxlock.If(test.fn)), test.part)
		})
	}
}

// A lease that is lost while the condition is evaluated has nothing built under it: it would
// get a token that is stale.
func TestRun_BuildsNothingUnderALostLease(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := fxlock.NewMemoryStore()
		built := func() *DB { t.Error("a constructor of the run was called"); return nil }
		lock := newLock(t, store, fxlock.PerRun(built))
		err := lock.Run(t.Context(), func(*DB) { t.Error("the body ran") }, fxlock.If(func(ctx context.Context) bool {
			if lock.Held() {
				_, _ = store.Break(ctx, key)
				_, _ = lock.Tick(ctx)
			}
			return true
		}))
		if !errors.Is(err, lockfx.ErrLost) {
			t.Errorf("err = %v", err)
		}
	})
}
