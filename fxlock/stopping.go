package fxlock

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"time"

	"go.uber.org/fx"

	"github.com/lockfx/lockfx/fxlock/internal/graph"
	"github.com/lockfx/lockfx/internal/lifecycle"
)

// Drain makes the stop of an application begin with its locks: all runs, campaigns and
// waiters are told at once, and nothing else stops before they have ended, or before the
// time of the stop is nearly over. Give it to fx.New as the LAST option: fx stops first what
// was started last.
//
// Without it the first stop hook of a lock, a body or a leadership tells all of the
// application's. What fx stops before that hook, since it was built later, may be closed
// under a run that uses it. A [Body] and a [Lead] stop before what they take as parameters,
// in every case. But a value that a body of [Lock.Run] or [Lock.Do] has captured is known to
// nobody: of NewReports(lock, db) fx may stop the db before the lock, and of
// NewReports(db, lock) after it.
func Drain() fx.Option {
	type in struct {
		fx.In
		All       []*stopping `group:"fxlock:stopping"`
		Lifecycle fx.Lifecycle
	}
	return fx.Invoke(func(app in) {
		app.Lifecycle.Append(fx.StopHook(func(ctx context.Context) error {
			all := stops(app.All)
			ctx = all.begin(ctx)
			errs := make([]error, len(all))
			var ended sync.WaitGroup
			for i, s := range all {
				if l := s.built(); l != nil {
					ended.Go(func() { errs[i] = l.Dispose(ctx) })
				}
			}
			ended.Wait()
			return errors.Join(errs...)
		}))
	})
}

// stopping is what one lock knows of the stop of its application. The stoppings of all
// locks find each other in a value group, which builds no lock.
type stopping struct {
	mu   sync.Mutex // guards what follows
	lock *Lock      // nil until it is built
	wait context.Context
}

// provideStopping returns a constructor of a stopping, which name is for, and a member of
// the group.
func provideStopping(name string, site uintptr) any {
	return graph.Located(func() (*stopping, *stopping) {
		s := new(stopping)
		return s, s
	}, site, fx.ResultTags(stoppingTag(name), stoppingGroup))
}

const stoppingGroup = `group:"fxlock:stopping"`

var stoppingType = reflect.TypeFor[*stopping]()

func stoppingTag(name string) string { return graph.NameTag("fxlock:stopping:" + name) }

// stops are those of an application.
type stops []*stopping

// begin tells all locks that the application stops, and returns the context that their
// hooks wait with. It ends a little before ctx: when ctx is over, fx says nothing but that,
// and skips what is left. What has not ended by then is not renewed any more, also where fx
// skips its hook.
func (all stops) begin(ctx context.Context) context.Context {
	wait, cancel := ctx, func() {}
	if end, limited := ctx.Deadline(); limited {
		wait, cancel = context.WithDeadline(ctx, end.Add(-min(time.Until(end)/20, maxSpare)))
	}
	var machines []*lifecycle.Machine // of this start: the next one makes others
	for _, s := range all {
		if m := s.begin(wait); m != nil {
			machines = append(machines, m)
		}
	}
	context.AfterFunc(wait, func() {
		cancel()
		for _, m := range machines {
			m.Abandon(wait)
		}
	})
	return wait
}

// begin tells the lock, if it is built, and returns its machine.
func (s *stopping) begin(wait context.Context) *lifecycle.Machine {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lock == nil {
		return nil
	}
	s.wait = wait
	m := s.lock.machine.Load()
	m.BeginDispose()
	return m
}

// begun returns the context of the stop under way, or nil.
func (s *stopping) begun() context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wait
}

func (s *stopping) built() *Lock {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lock
}

// join makes the lock one of its application's.
func (s *stopping) join(l *Lock, all stops) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lock, l.stopping, l.all = l, s, all
}

// restart forgets an earlier stop.
func (s *stopping) restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wait = nil
}

// stopBegins tells all locks of the application that it stops, unless another hook has,
// and returns the context to wait with.
func (l *Lock) stopBegins(ctx context.Context) context.Context {
	if wait := l.stopping.begun(); wait != nil {
		return wait
	}
	return l.all.begin(ctx)
}
