package fxlock

import (
	"fmt"
	"reflect"

	"go.uber.org/fx"

	"github.com/lockfx/lockfx/fxlock/internal/annotated"
)

// reach is what [Validate] asks for: it stands for a lock and all its bodies.
type reach struct{}

const reachGroup = `group:"fxlock:reach"`

// provideReach returns a constructor that needs the lock and each of its bodies.
// Nobody but Validate asks for what it gives.
func (s *settings) provideReach(site uintptr) any {
	var p paramObject
	p.add(reflect.TypeFor[*Lock](), nameTag([]string{s.name}))
	for _, b := range s.bodies {
		t, tag := b.purpose.gives(b, s)
		p.add(t, tag)
	}
	ctor := makeFunc([]reflect.Type{p.structType()}, reflect.TypeFor[reach](), func([]reflect.Value) (reflect.Value, error) {
		return reflect.ValueOf(reach{}), nil
	})
	return annotated.Located(ctor, site, fx.ResultTags(reachGroup))
}

// Validate is fx.ValidateApp that also reaches every lock and every [Body] which
// nobody takes, and that logs nothing unless opts say so. Call it in a test of the
// application: it builds nothing.
func Validate(opts ...fx.Option) error {
	type all struct {
		fx.In
		Reached []reach `group:"fxlock:reach"`
	}
	if err := fx.ValidateApp(fx.NopLogger, fx.Options(opts...), fx.Invoke(func(all) {})); err != nil {
		return fmt.Errorf("fxlock.Validate: %w", err)
	}
	return nil
}
