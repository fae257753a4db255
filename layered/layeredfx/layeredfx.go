// Package layeredfx puts a [layered.Locker] into an fx application, and, by
// [ThroughHost], the layers of a host in front of a lock of package fxlock.
//
//	fx.New(
//		layeredfx.Module("reports", layered.WithNamespace("reports")),
//		fx.Invoke(func(l *layered.Locker) { ... layered.WithLock(ctx, in, action, layered.WithLocker(l)) ... }),
//	)
//
// The application's stop closes the Locker after all that was built with it has
// stopped, and a start after a stop opens it again; see [layered.Locker.Close].
package layeredfx

import (
	"context"
	"fmt"
	"strconv"

	"go.uber.org/fx"

	"github.com/lockfx/lockfx/layered"
)

// Module provides a *layered.Locker, unnamed and as `name:"<name>"`. Its calls share
// one memory layer, and opts are their defaults. The name is for the graph and for
// messages: it does not become part of a key; [layered.WithNamespace] does. Faults of
// the options are errors of fx.New, all at once.
func Module(name string, opts ...layered.LockerOption) fx.Option {
	return module(name, opts, fx.Provide(
		fx.Annotate(func() rule { return rule{} }, fx.ResultTags(tag(oneUnnamed))),
		fx.Annotate(func(l *layered.Locker) *layered.Locker { return l }, fx.ParamTags(tag(name))),
	))
}

// rule is in the graph once. Where there are two, fx prints the name, which says what
// to do.
type rule struct{}

const oneUnnamed = "an unnamed *layered.Locker, of which there can be one: use layeredfx.NamedModule for all but one"

// NamedModule is Module without the unnamed binding. All but one of an application's
// modules need it.
func NamedModule(name string, opts ...layered.LockerOption) fx.Option {
	return module(name, opts)
}

func module(name string, opts []layered.LockerOption, more ...fx.Option) fx.Option {
	if name == "" {
		return fx.Error(fmt.Errorf("layeredfx.Module(%q): the name must not be empty", name))
	}
	// One Locker for each application, so that one option value serves many.
	construct := func(lc fx.Lifecycle) (*layered.Locker, error) {
		l, err := layered.New(opts...)
		if err != nil {
			return nil, fmt.Errorf("layeredfx.Module(%q): %w", name, err)
		}
		lc.Append(fx.Hook{
			OnStart: func(context.Context) error {
				l.Open()
				return nil
			},
			OnStop: func(ctx context.Context) error {
				if err := l.Close(ctx); err != nil {
					return fmt.Errorf("layeredfx.Module(%q): %w", name, err)
				}
				return nil
			},
		})
		return l, nil
	}
	if _, err := layered.New(opts...); err != nil {
		more = append(more, fx.Error(fmt.Errorf("layeredfx.Module(%q): %w", name, err)))
	}
	return fx.Module(name, append(more, fx.Provide(fx.Annotate(construct, fx.ResultTags(tag(name)))))...)
}

func tag(name string) string { return "name:" + strconv.Quote(name) }
