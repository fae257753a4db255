package fxlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/fx"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

var errLeaving = errors.New("could not leave")

// turnstile is a gate that keeps a journal.
type turnstile struct {
	journal *journal
	leave   error
	refuse  error
	fault   error
	shut    chan struct{} // nil, or closed to let somebody in
}

func (g *turnstile) Enter(ctx context.Context, k string, limit time.Duration) (func() error, string, error) {
	g.journal.add("enter %s, limit %v, label %v", k, limit, lockfx.LabelFrom(ctx) != "")
	if g.shut != nil {
		select {
		case <-g.shut:
		case <-ctx.Done():
			return nil, "", &lockfx.NotAcquiredError{Key: k, HeldBy: "another before the gate"}
		}
	}
	if g.refuse != nil {
		return nil, "", g.refuse
	}
	return func() error { g.journal.add("leave"); return g.leave }, "came through", nil
}

func (g *turnstile) String() string { return "turnstile" }

func (g *turnstile) Check() error { return g.fault }

func TestWithGate_StandsInFrontOfTheStore(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var j journal
		store := newSpyStore(&j)
		core, lines := observer.New(zap.InfoLevel)
		lock := newLock(t, store, fxlock.WithGate(&turnstile{journal: &j}), fxlock.WithLogger(zap.New(core)), fxlock.WaitForever())
		first := holding(t, lock)
		second := inBackground(func() error { return lock.Run(t.Context(), func() { j.add("body") }) })
		time.Sleep(time.Second)
		j.expect(t, "enter nightly, limit 30s, label true", "acquire") // the second is in the line, and not at the gate
		first()
		noError(t, second.endsNow(t))
		j.expect(t, "enter nightly, limit 30s, label true", "acquire", "release", "leave",
			"enter nightly, limit 30s, label true", "acquire", "body", "release", "leave")
		for _, line := range lines.All() {
			if note := line.ContextMap()["gate"]; note != "came through" {
				t.Errorf("%q notes %v", line.Message, note)
			}
		}
		if lines.Len() != 4 {
			t.Errorf("there are %d lines", lines.Len())
		}
	})
}

func TestWithGate_IsLeftHoweverTheRunEnds(t *testing.T) {
	var j journal
	gate := &turnstile{journal: &j, leave: errLeaving}
	lock := newLock(t, newSpyStore(&j), fxlock.WithGate(gate))
	for name, body := range map[string]func(){"a return": func() {}, "a panic": func() { panic(errWhy) }} {
		j.lines = nil
		e := endingOf(func() error { return lock.Run(t.Context(), func() { j.add("body"); body() }) })
		if name == "a panic" && e.panics != any(errWhy) {
			t.Errorf("it ended with %+v", e)
		}
		if name == "a return" {
			wantIs(t, e.err, errLeaving)
		}
		j.expect(t, "enter nightly, limit 0s, label true", "acquire", "body", "release", "leave")
	}

	other := newSpyStore(new(journal))
	if _, err := other.MemoryStore.Acquire(t.Context(), key, ttl); err != nil {
		t.Fatal(err)
	}
	j.lines = nil
	wantIs(t, newLock(t, other, fxlock.WithGate(gate)).Run(t.Context(), func() {}), lockfx.ErrNotAcquired, errLeaving)
	j.expect(t, "enter nightly, limit 0s, label true", "leave")
}

// The gate spares the store requests. Whoever holds it may have lost its lease.
func TestWithGate_DecidesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var j journal
		store := newTallyStore()
		shut := &turnstile{journal: &j, shut: make(chan struct{})}
		lock := newLock(t, store, fxlock.WithGate(shut))
		for limit, want := range map[time.Duration]time.Duration{time.Minute: ttl, 10 * time.Second: 5 * time.Second} {
			began := time.Now()
			noError(t, lock.Do(t.Context(), workNothing, fxlock.Wait(limit)))
			if passed := time.Since(began); passed != want {
				t.Errorf("with a limit of %v the store was asked after %v, want %v", limit, passed, want)
			}
		}
		held := &turnstile{journal: &j, refuse: &lockfx.NotAcquiredError{Key: key}}
		noError(t, lock.Do(t.Context(), workNothing, fxlock.WithGate(held))) // the run's own wins
		run := inBackground(func() error { return lock.Do(t.Context(), workNothing, fxlock.WaitForever()) })
		time.Sleep(time.Second)
		must(t, lock.Dispose(t.Context()))
		wantIs(t, run.endsNow(t), lockfx.ErrDisposed)
	})
}

func TestWithGate_FailureEndsTheRun(t *testing.T) {
	store := newTallyStore()
	lock := newLock(t, store, fxlock.WithGate(&turnstile{journal: new(journal), refuse: errWhy}))
	for _, wait := range []fxlock.RunOption{fxlock.Wait(0), fxlock.Wait(time.Minute), fxlock.WaitForever()} {
		if err := lock.Do(t.Context(), workNothing, wait); !identical(err, errWhy) {
			t.Errorf("%v: %v", wait, err)
		}
	}
	if n := store.asked(); n != 0 {
		t.Errorf("the store was asked %d times", n)
	}
}

// The context that a gate is given bounds the waiting, and the body does not end with
// it.
func TestWithGate_ItsContextDoesNotBoundTheBody(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		lock := newLock(t, newTallyStore(), fxlock.WithGate(&turnstile{journal: new(journal)}))
		noError(t, lock.Do(t.Context(), func(ctx context.Context, _ lockfx.Holder) error {
			time.Sleep(time.Hour)
			return ctx.Err()
		}, fxlock.Wait(time.Second)))
	})
}

func TestWithGate_RejectsMistakes(t *testing.T) {
	var none *turnstile
	err := fx.New(fx.NopLogger, fxlock.Module(key, fxlock.WithStore(newTallyStore()),
		fxlock.WithGate(nil), fxlock.WithGate(none), fxlock.WithGate(&turnstile{fault: errWhy}))).Err()
	wantIs(t, err, lockfx.ErrConfig, errWhy)
	wantText(t, err, "fxlock.WithGate(<nil>): must not be nil", "fxlock.WithGate(*fxlock_test.turnstile): must not be nil", "fxlock.WithGate(turnstile): why")
	if got := fxlock.WithGate(struct{ fxlock.Gate }{}).String(); got != "fxlock.WithGate(struct { fxlock.Gate })" {
		t.Errorf("it prints as %s", got)
	}
	wantIs(t, newLock(t, newTallyStore()).Do(t.Context(), workNothing, fxlock.WithGate(nil)), lockfx.ErrConfig)
}
