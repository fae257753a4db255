package fxlock

import (
	"fmt"

	"go.uber.org/fx"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock/internal/graph"
)

// Bind puts a lock that was made with [New] into an application, as
// `name:"<name>"`. The application's stop disposes of it, even if nobody takes it.
// If the name is taken, fx.New fails.
func Bind(name string, lock *Lock) fx.Option {
	site := graph.CallSite()
	if name == "" || lock == nil {
		return fx.Error(fmt.Errorf("fxlock.Bind(%q) (%s): %w: the name must not be empty and the lock not nil",
			name, graph.Place(site), lockfx.ErrConfig))
	}
	tag := graph.NameTag(name)
	provide := func(lc fx.Lifecycle, own *stopping, all []*stopping) *Lock {
		own.join(lock, all)
		lc.Append(lock.hook())
		return lock
	}
	return fx.Options(
		fx.Provide(graph.OneOfName(site, name), provideStopping(name, site),
			graph.Located(provide, site, fx.ParamTags("", stoppingTag(name), stoppingGroup), fx.ResultTags(tag))),
		fx.Invoke(fx.Annotate(func(*Lock) {}, fx.ParamTags(tag))),
	)
}
