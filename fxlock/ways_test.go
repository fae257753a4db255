package fxlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/fx"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

type (
	// DB stands for a value of an application.
	DB struct{ Name string }
	// Writer stands for what is built once per run.
	Writer struct {
		DB    *DB
		Token lockfx.Token
	}
	// Nightly is a func type of an application.
	Nightly func(context.Context) error
	// Count is one with an input and a result.
	Count func(ctx context.Context, of string, times int) (int, error)
)

func newDB() *DB { return &DB{"app"} }

func newWriter(db *DB, token lockfx.Token) *Writer { return &Writer{db, token} }

func TestRun_EveryWayInHasATokenAndReleases(t *testing.T) {
	for name, run := range map[string]func(ctx context.Context, lock *fxlock.Lock, nightly Nightly, seen *lockfx.Token) error{
		"Do": func(ctx context.Context, lock *fxlock.Lock, _ Nightly, seen *lockfx.Token) error {
			return lock.Do(ctx, func(_ context.Context, h lockfx.Holder) error { *seen = h.Token(); return nil })
		},
		"DoValue": func(ctx context.Context, lock *fxlock.Lock, _ Nightly, seen *lockfx.Token) (err error) {
			*seen, err = fxlock.DoValue(ctx, lock, func(_ context.Context, h lockfx.Holder) (lockfx.Token, error) {
				return h.Token(), nil
			})
			return err
		},
		"Run": func(ctx context.Context, lock *fxlock.Lock, _ Nightly, seen *lockfx.Token) error {
			return lock.Run(ctx, func(token lockfx.Token) { *seen = token })
		},
		"RunValue": func(ctx context.Context, lock *fxlock.Lock, _ Nightly, seen *lockfx.Token) (err error) {
			*seen, err = fxlock.RunValue[lockfx.Token](ctx, lock, func(token lockfx.Token) (lockfx.Token, error) { return token, nil })
			return err
		},
		"RunValue without an error": func(ctx context.Context, lock *fxlock.Lock, _ Nightly, seen *lockfx.Token) (err error) {
			*seen, err = fxlock.RunValue[lockfx.Token](ctx, lock, func(token lockfx.Token) lockfx.Token { return token })
			return err
		},
		"Body": func(ctx context.Context, _ *fxlock.Lock, nightly Nightly, seen *lockfx.Token) error {
			return nightly(context.WithValue(ctx, seenKey{}, seen))
		},
		"Acquire and Release": func(ctx context.Context, lock *fxlock.Lock, _ Nightly, seen *lockfx.Token) error {
			if ok, err := lock.Acquire(ctx); !ok || err != nil {
				return errors.Join(errors.New("not acquired"), err)
			}
			*seen = lock.Token()
			if held, err := lock.Tick(ctx); !held || err != nil || !lock.Held() || lock.State() != lockfx.StateHeld {
				return errors.Join(errors.New("not held"), err)
			}
			if ok, err := lock.Release(ctx); !ok || err != nil {
				return errors.Join(errors.New("not released"), err)
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			var j journal
			store := newSpyStore(&j)
			var nightly Nightly
			lock := lockIn(t, store, options(fxlock.Body[Nightly](func(ctx context.Context, token lockfx.Token) error {
				*ctx.Value(seenKey{}).(*lockfx.Token) = token
				return nil
			})), fx.Populate(&nightly))
			var seen lockfx.Token
			noError(t, run(t.Context(), lock, nightly, &seen))
			j.expect(t, "acquire", "release")
			if seen < 1 || !store.free() || lock.State() != lockfx.StateReleased || lock.Token() != 0 || lock.Key() != key {
				t.Errorf("fence %v, store free %v, lock %v %v %q", seen, store.free(), lock.State(), lock.Token(), lock.Key())
			}
		})
	}
}

type seenKey struct{}

func TestBody_TakesInputsAndReturnsValues(t *testing.T) {
	var count Count
	lockIn(t, fxlock.NewMemoryStore(), options(
		fxlock.PerRun(newWriter),
		fxlock.Body[Count](func(of string, w *Writer, times int) (int, error) {
			if w.Token < 1 || w.DB.Name != of {
				return -1, errBody
			}
			return times * len(of), nil
		})), fx.Provide(newDB), fx.Populate(&count))
	for times := range 3 { // inputs are those of each call
		if n, err := count(t.Context(), "app", times); n != 3*times || err != nil {
			t.Errorf("count = %d, %v, want %d", n, err, 3*times)
		}
	}
	if n, err := count(t.Context(), "other", 1); n != -1 || !identical(err, errBody) {
		t.Errorf("count = %d, %v, want what the body returned", n, err)
	}
}

func TestRunValue_IsZeroWhenTheBodyDidNotRun(t *testing.T) {
	store := fxlock.NewMemoryStore()
	var count Count
	lock := lockIn(t, store, options(fxlock.Body[Count](func(string, int) (int, error) { return 7, nil })), fx.Populate(&count))
	inTheWay(t, store)
	n, err := count(t.Context(), "", 0)
	wantIs(t, err, lockfx.ErrNotAcquired)
	v, err := fxlock.RunValue[int](t.Context(), lock, func() int { return 7 })
	wantIs(t, err, lockfx.ErrNotAcquired)
	w, err := fxlock.DoValue(t.Context(), lock, func(context.Context, lockfx.Holder) (int, error) { return 7, nil })
	wantIs(t, err, lockfx.ErrNotAcquired)
	if n != 0 || v != 0 || w != 0 {
		t.Errorf("values %d, %d, %d of bodies that did not run", n, v, w)
	}
}

// What the body returned beside its error, or beside a failed release, is its value.
func TestRunValue_IsTheBodysWhateverTheError(t *testing.T) {
	store := newSpyStore(new(journal))
	lock := newLock(t, store)
	v, err := fxlock.RunValue[int](t.Context(), lock, func() (int, error) { return 7, errBody })
	wantIs(t, err, errBody)
	store.release = func() (bool, error) { return false, errWhy }
	_, _ = store.Break(t.Context(), key)
	w, err := fxlock.DoValue(t.Context(), lock, func(context.Context, lockfx.Holder) (int, error) { return 8, nil })
	wantIs(t, err, errWhy)
	if v != 7 || w != 8 {
		t.Errorf("values %d and %d, want those of the bodies", v, w)
	}
}

// inTheWay holds the key for somebody else.
func inTheWay(t *testing.T, store lockfx.Store) {
	t.Helper()
	grant, err := store.Acquire(lockfx.WithLabel(t.Context(), "somebody"), key, time.Hour)
	if err != nil || !grant.OK {
		t.Fatalf("Acquire: %+v, %v", grant, err)
	}
}

// A body that can't be called is refused before the lock is taken.
func TestRun_RejectsAFaultyBodyBeforeAcquiring(t *testing.T) {
	var j journal
	lock := newLock(t, newSpyStore(&j))
	ctx := t.Context()
	var none func()
	for name, tt := range map[string]struct {
		err  error
		says string
	}{
		"nil":           {lock.Run(ctx, nil), `run "nightly": check the body: invalid configuration: must be a function, and is nil`},
		"nil func":      {lock.Run(ctx, none), "must be a function, and is nil"},
		"annotated":     {lock.Run(ctx, fx.Annotate(func(*DB) {}, fx.ParamTags(`name:"a"`))), "an fx.In struct tags parameters"},
		"no func":       {lock.Run(ctx, 7), "must be a function, not of type int"},
		"value for Run": {lock.Run(ctx, func() int { return 0 }), "func() int must return nothing or an error; fxlock.RunValue takes a value"},
		"own error":     {lock.Run(ctx, func() *lockfx.LostError { return nil }), "must return nothing or an error"},
		"two values":    {lock.Run(ctx, func() (int, error) { return 0, nil }), "must return nothing or an error"},
		"wrong value":   {valueErr(fxlock.RunValue[int](ctx, lock, func() string { return "" })), "func() string must return int, or int and an error"},
		"no value":      {valueErr(fxlock.RunValue[int](ctx, lock, func() error { return nil })), "must return int, or int and an error"},
		"RunValue nil":  {valueErr(fxlock.RunValue[int](ctx, lock, nil)), "must be a function, and is nil"},
		"Do nil":        {lock.Do(ctx, nil), "must be a function, and is nil"},
		"DoValue nil":   {valueErr(fxlock.DoValue[int](ctx, lock, nil)), "must be a function, and is nil"},
		"option":        {lock.Run(ctx, func() {}, nil, fxlock.WithLabel("l"), nil), "run option 1 is nil\ninvalid configuration: run option 3 is nil"},
		"option of Do":  {lock.Do(ctx, func(context.Context, lockfx.Holder) error { return nil }, nil), "run option 1 is nil"},
		"bad parameter": {lock.Run(ctx, func(struct {
			fx.In
			hidden int
		}) {
		}), "unexported fields not allowed"},
		"two kinds of faults": {lock.Run(ctx, func(*DB, *Writer) {}), "*fxlock_test.Writer does not reach the run"},
	} {
		t.Run(name, func(t *testing.T) {
			wantText(t, tt.err, tt.says)
			var scope *lockfx.ScopeError
			if !errors.As(tt.err, &scope) || scope.Key != key {
				t.Errorf("%#v is no ScopeError", tt.err)
			}
		})
	}
	j.expect(t)
}

func valueErr[T any](_ T, err error) error { return err }

// The lock is not reentrant: who asks while it is in use is told so at once.
func TestRun_BusyLockRefusesAtOnce(t *testing.T) {
	var nightly Nightly
	store := fxlock.NewMemoryStore()
	lock := lockIn(t, store, options(fxlock.Body[Nightly](func() error { return nil })), fx.Populate(&nightly))
	noError(t, lock.Run(t.Context(), func(ctx context.Context, outer lockfx.Holder) {
		for name, err := range map[string]error{
			"Run":  lock.Run(ctx, func() { t.Error("the body ran") }),
			"Do":   lock.Do(ctx, func(context.Context, lockfx.Holder) error { t.Error("the body ran"); return nil }),
			"Body": nightly(ctx),
		} {
			var refused *lockfx.NotAcquiredError
			if !errors.As(err, &refused) || !refused.Self || refused.Key != key {
				t.Errorf("%s: %v", name, err)
			}
			wantIs(t, err, lockfx.ErrNotAcquired, lockfx.ErrNotIdle)
		}
		ok, err := lock.Acquire(ctx)
		if ok {
			t.Error("acquired twice")
		}
		wantIs(t, err, lockfx.ErrNotIdle)
		ok, err = lock.Release(ctx)
		if ok || !outer.Held() {
			t.Error("the lease of a run was released under its body")
		}
		wantIs(t, err, lockfx.ErrNotIdle)
	}))
	noError(t, lock.Run(t.Context(), func() {}))
}
