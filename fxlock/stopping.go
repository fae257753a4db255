package fxlock

import (
	"context"
	"errors"
	"reflect"
	"sync"

	"go.uber.org/fx"

	"github.com/lockfx/lockfx/fxlock/internal/graph"
	"github.com/lockfx/lockfx/fxlock/internal/stop"
)

// Drain makes the stop of an application begin with its locks: all runs, campaigns and
// waiters are notified at once, and nothing else stops before they have ended, or before the
// time of the stop is nearly over. Give it to fx.New as the LAST option, since fx stops in
// reverse order of starting.
//
// Without it the first stop hook of a lock, a body or a leadership notifies all locks of the
// application. Values that were built later stop before that hook, and may be closed under a
// run that uses them. A [Body] and a [Lead] always stop before what they take as parameters.
// But fx does not know which values a body of [Lock.Run] or [Lock.Do] has captured: it may
// stop the db of NewReports(lock, db) before the lock, and that of NewReports(db, lock) after
// it.
func Drain() fx.Option {
	type in struct {
		fx.In
		All       []*stop.Member `group:"fxlock:stopping"`
		Lifecycle fx.Lifecycle
	}
	return fx.Invoke(func(app in) {
		app.Lifecycle.Append(fx.StopHook(func(ctx context.Context) error {
			ctx = stop.All(app.All).Begin(ctx)
			errs := make([]error, len(app.All))
			var ended sync.WaitGroup
			for i, m := range app.All {
				ended.Go(func() { errs[i] = m.Drain(ctx) })
			}
			ended.Wait()
			return errors.Join(errs...)
		}))
	})
}

// The members of all locks find each other in a value group, which builds no lock.
const stoppingGroup = `group:"fxlock:stopping"`

// provideStopping returns a constructor of the stop.Member of the lock called name.
func provideStopping(name string, site uintptr) any {
	return graph.Located(func() *stop.Member { return new(stop.Member) }, site, fx.ResultTags(stoppingTag(name)))
}

// shareStopping returns a constructor that puts that member into the group. It is never
// private: all locks of an application stop together.
func shareStopping(name string, site uintptr) any {
	return graph.Located(graph.PassOn(stoppingType, stoppingTag(name)), site, fx.ResultTags(stoppingGroup))
}

var stoppingType = reflect.TypeFor[*stop.Member]()

func stoppingTag(name string) string { return graph.NameTag("fxlock:stopping:" + name) }
