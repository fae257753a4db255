package fxlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"go.uber.org/fx"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

func panicsHere() { panic("boom") }

// Whoever reads the error of a run finds the line that panicked.
func TestPanic_KeepsItsStack(t *testing.T) {
	appends := func(hook fx.Hook) fxlock.Option {
		return fxlock.PerRun(func(lc fx.Lifecycle) *DB { lc.Append(hook); return nil })
	}
	panicking := func(context.Context) error { panicsHere(); return nil }
	store := func(set func(*spyStore)) fxlock.Option {
		s := newSpyStore(new(journal))
		set(s)
		return fxlock.WithStore(s)
	}
	for name, opts := range map[string][]fxlock.Option{
		"constructor":  {memory(), fxlock.PerRun(func() *DB { panicsHere(); return nil })},
		"OnStart hook": {memory(), appends(fx.Hook{OnStart: panicking})},
		"OnStop hook":  {memory(), appends(fx.Hook{OnStop: panicking})},
		"acquisition": {store(func(s *spyStore) {
			s.acquire = func(g lockfx.Grant, err error) (lockfx.Grant, error) { panicsHere(); return g, err }
		}), fxlock.PerRun(newDB)},
		"release": {store(func(s *spyStore) {
			s.release = func() (bool, error) { panicsHere(); return true, nil }
		}), fxlock.PerRun(newDB)},
	} {
		t.Run(name, func(t *testing.T) {
			var lock *fxlock.Lock
			app := fx.New(fx.NopLogger, fxlock.Module(key, opts...), fx.Populate(&lock))
			noError(t, app.Err())
			err := lock.Run(t.Context(), func(*DB) {})
			var p *lockfx.PanicError
			if !errors.As(err, &p) || p.Value != "boom" || !strings.Contains(string(p.Stack), "panicsHere") ||
				!strings.Contains(err.Error(), "panic_test.go:") {
				t.Errorf("the error does not say where the panic was: %v", err)
			}
		})
	}
}
