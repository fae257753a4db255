package fxlock

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"go.uber.org/fx"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock/internal/faults"
	"github.com/lockfx/lockfx/fxlock/internal/graph"
	"github.com/lockfx/lockfx/fxlock/internal/mapdecode"
)

// reach is what [Validate] asks for: it stands for a lock and all its bodies.
type reach struct{}

const reachGroup = `group:"fxlock:reach"`

// provideReach returns a constructor that needs the lock and each of its bodies.
// Only Validate takes what it gives.
func (s *settings) provideReach(site uintptr) any {
	var p graph.Params
	p.Add(reflect.TypeFor[*Lock](), graph.NameTag(s.name))
	for _, b := range s.bodies {
		t, tag := b.gives(s)
		p.Add(t, tag)
	}
	ctor := graph.Constructor([]reflect.Type{p.Type()}, reflect.TypeFor[reach](), func([]reflect.Value) (reflect.Value, error) {
		return reflect.ValueOf(reach{}), nil
	})
	return graph.Located(ctor, site, fx.ResultTags(reachGroup))
}

// Validate is fx.ValidateApp that also checks every lock and every [Body] that nothing
// takes. It builds nothing, and logs nothing unless opts say so. If a name or a type of this
// package is missing, its error suggests what may have been meant. A [Lead] beside an
// [OnStart] must say whether it begins after the job: see [After] and [NotAfter]. Call
// Validate in a test of the application.
func Validate(opts ...fx.Option) error {
	type all struct {
		fx.In
		Reached []reach `group:"fxlock:reach"`
	}
	app := fx.Options(opts...)
	err := fx.ValidateApp(fx.NopLogger, app, fx.Invoke(func(all) {}))
	if err != nil {
		err = fmt.Errorf("%w%s", err, hint(err.Error(), app))
	}
	if err = join(err, unordered(app.String())); err != nil {
		return faults.At("fxlock.Validate", err)
	}
	return nil
}

// missingType is how fx prints what is missing.
var missingType = regexp.MustCompile(`missing type.*?(\*fxlock\.(?:Lock|Leadership|Scope)|lockfx\.(?:Token|Holder))(?:\[name="([^"]*)"\])?`)

// unordered returns an error for each Lead that does not say whether it begins after a job
// of the start. app is how fx prints the options.
func unordered(app string) error {
	var faults []error
	graph.Unordered(app, func(lock, marker string) {
		faults = append(faults, fmt.Errorf("%w: the fxlock.Lead of lock %q may begin before fxlock.OnStart[%s]: "+
			"add fxlock.After[%s]() to it, or fxlock.NotAfter[%s]() if it need not wait", lockfx.ErrConfig, lock, marker, marker, marker))
	})
	return errors.Join(faults...)
}

// hint says what may have been meant by a type of ours that is missing in app.
func hint(message string, app fx.Option) string {
	missing := missingType.FindStringSubmatch(message)
	names := graph.LocksIn(app.String())
	switch {
	case missing == nil:
		return ""
	case !strings.HasPrefix(missing[1], "*fxlock.L"):
		return fmt.Sprintf("; a run alone binds %s: add the constructor to fxlock.PerRun", missing[1])
	case len(names) == 0:
		return "; no fxlock.Module is among the options"
	case missing[2] != "" && !slices.Contains(names, missing[2]):
		return fmt.Sprintf("; the name %q is unknown%s", missing[2], mapdecode.DidYouMean(missing[2], names))
	case missing[1] == "*fxlock.Leadership":
		return "; fxlock.Lead provides it"
	}
	return fmt.Sprintf("; every lock is fxlock.Named(): inject it by name, such as name:%q", names[0])
}
