//go:build torture

package fxlock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"go.uber.org/dig"
	"go.uber.org/fx"
	"go.uber.org/goleak"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

type (
	gateNightly func(context.Context) error
	gateDB      struct{ name string }
	gateBuilt   struct { // once per run
		db    *gateDB
		fence lockfx.Token
	}
	gateWriter  struct{ gateBuilt }
	gateSession struct{ gateBuilt }
	gateStep    struct{ gateBuilt }
	gateIn      struct {
		fx.In
		Ctx     context.Context
		Fence   lockfx.Token `name:"lock:fence"`
		Holder  lockfx.Holder
		Writer  *gateWriter
		Session *gateSession
		Steps   []*gateStep `group:"steps"`
		Scope   *fxlock.Scope
	}
)

// gateApp is an application whose runs build values with all kinds of constructors
// and hooks.
type gateApp struct {
	clk     *gateClock
	lock    *fxlock.Lock
	nightly gateNightly

	// Of the run under way.
	watched *watchlist
	ends    error // what the body returns, or panics with

	built, started, stopped int
	keep                    func(any) // a planted fault, or nil
}

var (
	errGateBody  = errors.New("the body's error")
	errGatePanic = errors.New("the body's panic")
)

func newGateApp(t *testing.T) *gateApp {
	g := &gateApp{clk: newGateClock()}
	app := fx.New(fx.NopLogger, fx.Supply(&gateDB{name: "gate"}),
		fx.Provide(fx.Annotate(func(db *gateDB) *gateStep { return &gateStep{gateBuilt{db: db}} }, fx.ResultTags(`group:"steps"`))),
		fxlock.Module("gate",
			fxlock.WithStore(newGateStore(g.clk)), fxlock.WithClock(g.clk),
			fxlock.Share[*gateDB](), fxlock.ShareGroup[*gateStep]("steps"),
			fxlock.PerRun(
				g.newWriter,
				fx.Annotate(g.newSession, fx.OnStart(g.start), fx.OnStop(g.stop)),
				fx.Annotated{Group: "steps", Target: g.newStep},
				fx.Annotate(g.newStep, fx.ResultTags(`group:"steps"`), fx.OnStart(g.start), fx.OnStop(g.stop)),
			),
			fxlock.Body[gateNightly](g.body)),
		fx.Populate(&g.lock, &g.nightly))
	if err := app.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := app.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return g
}

func (g *gateApp) start(context.Context) error { g.started++; return nil }
func (g *gateApp) stop(context.Context) error  { g.stopped++; return nil }

func (g *gateApp) newWriter(_ context.Context, lc fx.Lifecycle, db *gateDB, fence lockfx.Token) *gateWriter {
	lc.Append(fx.Hook{OnStart: g.start, OnStop: g.stop})
	return note(g, &gateWriter{gateBuilt{db, fence}})
}

func (g *gateApp) newSession(w *gateWriter) *gateSession {
	return note(g, &gateSession{w.gateBuilt})
}

func (g *gateApp) newStep(w *gateWriter, _ lockfx.Holder) *gateStep {
	return note(g, &gateStep{w.gateBuilt})
}

// note watches what a constructor built.
func note[T any](g *gateApp, v *T) *T {
	g.built++
	if g.keep != nil {
		g.keep(v)
	}
	return watch(g.watched, v)
}

func (g *gateApp) body(in gateIn) error {
	again, err := fxlock.Get[*gateWriter](in.Scope)
	switch {
	case err != nil:
		return err
	case again != in.Writer || in.Writer.fence != in.Fence || in.Holder.Token() != in.Fence || lockfx.TokenFrom(in.Ctx) != in.Fence:
		return fmt.Errorf("a run under token %v was given %+v", in.Fence, in)
	case len(in.Steps) != 3:
		return fmt.Errorf("%d steps, want that of the application and two of the run", len(in.Steps))
	case errors.Is(g.ends, errGatePanic):
		panic(g.ends)
	}
	return g.ends
}

// run makes one run by call. One in ten ends with an error, and one with a panic.
func (g *gateApp) run(ctx context.Context, t *testing.T, i int, w *watchlist, call func(context.Context) error) {
	g.watched, g.ends = w, nil
	switch i % 10 {
	case 3:
		g.ends = errGateBody
	case 7:
		g.ends = errGatePanic
	}
	built, started, stopped := g.built, g.started, g.stopped
	if err := contained(marked(ctx, w, g.clk), call); !errors.Is(err, g.ends) {
		t.Fatalf("run %d ended with %v, want %v", i, err, g.ends)
	}
	built, started, stopped = g.built-built, g.started-started, g.stopped-stopped
	if built != 4 || started != 3 || stopped != 3 {
		t.Fatalf("run %d: %d values, %d hooks started and %d stopped; want 4, 3 and 3", i, built, started, stopped)
	}
}

// contained returns what call panicked with as its error.
func contained(ctx context.Context, call func(context.Context) error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = r.(error)
		}
	}()
	return call(ctx)
}

func TestGateRetentionOfRuns(t *testing.T) {
	defer goleak.VerifyNone(t)
	t.Run("sound", func(t *testing.T) {
		const times = 100_000
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		g := newGateApp(t)
		for name, call := range map[string]func(context.Context) error{
			"Lock.Run": func(ctx context.Context) error { return g.lock.Run(ctx, g.body) },
			"Body":     g.nightly,
		} {
			left := retention(times, g.clk, func(i int, w *watchlist) { g.run(ctx, t, i, w, call) })
			if err := left.fault(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			t.Logf("GATE retention of runs by %s: %d runs with 4 constructors, 3 hooks and a group each; left: %v", name, times, left)
		}
	})
	t.Run("controls", func(t *testing.T) {
		for name, planted := range plantedLeaks {
			left := planted.run(t)
			if !planted.found(left) || left.fault() == nil {
				t.Errorf("%s left %v", name, left)
			}
			t.Logf("GATE control of retention of runs, %s: found, it left %v", name, left)
		}
	})
}

// plantedLeaks are runs that leave something behind, and what must be found of it.
var plantedLeaks = map[string]struct {
	run   func(*testing.T) retained
	found func(retained) bool
}{
	"a constructor that keeps what it built": {
		func(t *testing.T) retained {
			g := newGateApp(t)
			var kept []any
			g.keep = func(v any) { kept = append(kept, v) }
			return g.leaky(t)
		},
		func(r retained) bool { return r.values > 0 && r.bytes > maxBytes },
	},
	"a constructor that keeps a little memory": {
		func(t *testing.T) retained {
			g := newGateApp(t)
			var kept []*int64
			g.keep = func(any) { kept = append(kept, new(int64)) }
			return g.leaky(t)
		},
		func(r retained) bool { return r.values == 0 && r.bytes > maxBytes },
	},
	"a clock whose timers are not stopped": {
		func(t *testing.T) retained {
			g := newGateApp(t)
			g.clk.deaf = true
			return g.leaky(t)
		},
		func(r retained) bool { return r.timers > 0 },
	},
	"a container that lives on": {
		longLived,
		func(r retained) bool { return r.values > 0 && r.bytes > maxBytes },
	},
}

func (g *gateApp) leaky(t *testing.T) retained {
	return retention(2000, g.clk, func(i int, w *watchlist) {
		g.run(context.Background(), t, i, w, func(ctx context.Context) error { return g.lock.Run(ctx, g.body) })
	})
}

// longLived makes each run a child of one container, as dig invites to do.
func longLived(t *testing.T) retained {
	root := dig.New(dig.DeferAcyclicVerification())
	if err := root.Provide(func() *gateDB { return &gateDB{name: "gate"} }); err != nil {
		t.Fatal(err)
	}
	return retention(2000, newGateClock(), func(i int, w *watchlist) {
		run := root.Scope("run")
		for _, err := range []error{
			run.Provide(func() lockfx.Token { return lockfx.Token(i) }),
			run.Provide(func(db *gateDB, fence lockfx.Token) *gateWriter { return watch(w, &gateWriter{gateBuilt{db, fence}}) }),
			run.Invoke(func(*gateWriter) {}),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
	})
}
