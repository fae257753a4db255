package fxlock_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"go.uber.org/dig"
	"go.uber.org/fx"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

type (
	// Route is an element of groups.
	Route string
	// Cache is something that an application may not have.
	Cache struct{ Size int }
	// Inner is nested in a parameter object, Embedded is embedded in it.
	Inner struct {
		dig.In
		Replica *DB `name:"replica"`
	}
	Embedded struct {
		fx.In
		DB *DB
	}
	manyKinds struct {
		fx.In
		Embedded
		Inner  Inner
		Routes []Route `group:"routes"`
		Soft   []Route `group:"soft,soft"`
		Cache  *Cache  `optional:"true"`
		Fence  lockfx.Token
	}
)

func (p manyKinds) String() string {
	slices.Sort(p.Routes) // the order of a group means nothing
	var routes []string
	for _, r := range p.Routes {
		routes = append(routes, string(r))
	}
	return strings.Join([]string{p.DB.Name, p.Inner.Replica.Name, strings.Join(routes, "+")}, " ")
}

func manyValues() fx.Option {
	return fx.Options(
		fx.Provide(newDB,
			fx.Annotated{Name: "replica", Target: func() *DB { return &DB{"replica"} }},
			fx.Annotated{Group: "routes", Target: func() Route { return "/app" }},
		),
	)
}

// Values of the application reach a body in every way in which dig passes values.
func TestRun_TakesDigParametersOfEveryKind(t *testing.T) {
	body := func(ctx context.Context, p manyKinds, positional *DB, _ ...string) error {
		if got, want := p.String(), "app replica /app+/run"; got != want || p.Fence != lockfx.TokenFrom(ctx) ||
			p.Cache != nil || len(p.Soft) != 0 || positional != p.DB {
			t.Errorf("got %q, want %q; fence %v, cache %v, soft %v", got, want, p.Fence, p.Cache, p.Soft)
		}
		return nil
	}
	var nightly Nightly
	lock := lockIn(t, fxlock.NewMemoryStore(), options(
		fxlock.PerRun(fx.Annotated{Group: "routes", Target: func(lockfx.Token) Route { return "/run" }}),
		fxlock.Body[Nightly](body),
		fxlock.Share[*DB](), fxlock.Share[*DB]("replica"), fxlock.ShareGroup[Route]("routes"), fxlock.ShareGroup[Route]("soft"),
	), manyValues(), fx.Populate(&nightly))
	must(t, nightly(t.Context()))
	must(t, lock.Run(t.Context(), body))
	must(t, lock.Run(t.Context(), func(s *fxlock.Scope) error { return s.Invoke(body) }))
}

// A soft group holds what is built anyway, and an optional value what is there.
func TestRun_TakesSoftGroupsAndOptionalValues(t *testing.T) {
	type in struct {
		fx.In
		Soft  []Route `group:"soft,soft"`
		Cache *Cache  `optional:"true"`
	}
	type out struct {
		fx.Out
		DB    *DB
		Route Route `group:"soft"`
	}
	for name, tt := range map[string]struct {
		more []fx.Option
		want int
	}{
		"nobody builds it":     {nil, 0},
		"somebody builds it":   {[]fx.Option{fx.Invoke(func(*DB) {})}, 1},
		"there is an optional": {[]fx.Option{fx.Supply(&Cache{7})}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var nightly Nightly
			more := append(slices.Clip(tt.more), fx.Provide(func() out { return out{DB: newDB(), Route: "/soft"} }), fx.Populate(&nightly))
			lockIn(t, fxlock.NewMemoryStore(), options(fxlock.Body[Nightly](func(p in) error {
				if len(p.Soft) != tt.want {
					t.Errorf("the soft group is %v, want %d elements", p.Soft, tt.want)
				}
				if (p.Cache != nil) != (name == "there is an optional") {
					t.Errorf("the optional value is %v", p.Cache)
				}
				return nil
			})), more...)
			must(t, nightly(t.Context()))
		})
	}
}

// Where the lock's module stands decides what its bodies see.
func TestBody_SeesPrivateAndDecoratedValuesOfItsModule(t *testing.T) {
	names := func(db *DB, cache *Cache) error {
		if db.Name != "app, decorated" || cache.Size != 7 {
			t.Errorf("db %q, cache %d", db.Name, cache.Size)
		}
		return nil
	}
	var nightly Nightly
	feature := fx.Module("feature",
		fx.Decorate(func(db *DB) *DB { return &DB{db.Name + ", decorated"} }),
		fx.Provide(func() *Cache { return &Cache{7} }, fx.Private),
		fxlock.Module(key, fxlock.WithStore(fxlock.NewMemoryStore()), fxlock.Share[*DB](), fxlock.Share[*Cache](),
			fxlock.Body[Nightly](names)))
	var lock *fxlock.Lock
	started(t, fx.Provide(newDB), feature, fx.Populate(&nightly, &lock))
	must(t, nightly(t.Context()))
	must(t, lock.Run(t.Context(), names))
}

// What a constructor gives once per run shadows the application's value.
func TestPerRun_ValuesAreFreshInEachRunAndShadow(t *testing.T) {
	var nightly Nightly
	var seen []*DB
	lockIn(t, fxlock.NewMemoryStore(), options(
		fxlock.PerRun(func() *DB { return &DB{"of the run"} }, newWriter, fx.Annotate(
			func(db *DB) *Cache { return &Cache{len(db.Name)} }, fx.ParamTags(`name:"replica"`), fx.ResultTags(`name:"c"`))),
		fxlock.Body[Nightly](func(a, b *DB, w *Writer, p struct {
			fx.In
			Cache *Cache `name:"c"`
		},
		) error {
			if a != b || a != w.DB || p.Cache.Size != len("replica") {
				t.Errorf("%v, %v and %v are not one value of the run; cache %v", a, b, w.DB, p.Cache)
			}
			seen = append(seen, a)
			return nil
		}),
	), manyValues(), fx.Populate(&nightly))
	must(t, nightly(t.Context()))
	must(t, nightly(t.Context()))
	if seen[0] == seen[1] || seen[0].Name != "of the run" {
		t.Errorf("runs saw %p and %p, %q", seen[0], seen[1], seen[0].Name)
	}
}

// Constructors that fx.Annotate gives hooks have them run for each run.
func TestPerRun_AnnotatedHooksRunForEachRun(t *testing.T) {
	var j journal
	lock := newLock(t, newSpyStore(&j), fxlock.PerRun(fx.Annotate(
		func(lockfx.Token) *Cache { return new(Cache) },
		fx.OnStart(func(*Cache) { j.add("start") }),
		fx.OnStop(func(context.Context, *Cache) error { j.add("stop"); return nil }))))
	for range 2 {
		must(t, lock.Run(t.Context(), func(*Cache) { j.add("body") }))
	}
	once := []string{"acquire", "start", "body", "stop", "release"}
	j.expect(t, append(once, once...)...)
}

// Nothing is built that no body reaches, neither in the application nor in a run.
func TestPerRun_UnusedConstructorsAreNotCalled(t *testing.T) {
	never := func() *Cache { t.Error("was built"); return nil }
	lock := lockIn(t, fxlock.NewMemoryStore(), options(
		fxlock.PerRun(func(*Cache) *Writer { t.Error("was built"); return nil }),
		fxlock.Body[Nightly](func(*Cache) error { return nil })), fx.Provide(never))
	must(t, lock.Run(t.Context(), func(lockfx.Token) {}))
}
