package fxlock_test

import (
	"strings"
	"testing"

	"go.uber.org/fx"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

func TestNamespace_KeepsApplicationsApart(t *testing.T) {
	store := fxlock.NewMemoryStore()
	type locks struct {
		fx.In
		Migrations *fxlock.Lock
		Shared     *fxlock.Lock `name:"shared"`
	}
	module := fx.Options(fxlock.Module("migrations", fxlock.WithStore(store)),
		fxlock.Module("shared", fxlock.Named(), fxlock.WithKey("shared"), fxlock.WithStore(store)))
	var all [3]locks
	for i, namespace := range []fx.Option{fxlock.Namespace("billing"), fxlock.Namespace("shop"), fx.Options()} {
		app := fx.New(fx.NopLogger, module, namespace, fx.Invoke(func(l locks) { all[i] = l }))
		must(t, app.Err())
		if ok, err := all[i].Migrations.Acquire(t.Context()); !ok || err != nil {
			t.Errorf("application %d waits for another: %v, %v", i, ok, err)
		}
	}
	if got := all[0].Migrations.Key() + " " + all[1].Migrations.Key() + " " + all[2].Migrations.Key(); got != "billing/migrations shop/migrations migrations" {
		t.Errorf("the keys are %s", got)
	}
	must(t, all[0].Shared.Run(t.Context(), func() { // a key of their choice is one lock for both
		wantIs(t, all[1].Shared.Run(t.Context(), func() {}), lockfx.ErrNotAcquired)
	}))
}

func TestNamespace_Faults(t *testing.T) {
	line := here(1)
	wantText(t, newErr(fxlock.Namespace("")), `fxlock.Namespace("") (`+line+`): `, `must not be empty`)
	long := newErr(fxlock.Namespace(strings.Repeat("n", 510)), fxlock.Module(key, memory()), fx.Invoke(func(*fxlock.Lock) {}))
	wantIs(t, long, lockfx.ErrConfig)
	wantText(t, long, `fxlock.Module("nightly"): invalid configuration: key "nnn`, "at most 512 are allowed")
	wantText(t, newErr(fxlock.Namespace("a"), fxlock.Namespace("b")), "a fxlock.Namespace, of which an application can have one")
}
