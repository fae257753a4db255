package fxlock_test

import (
	"context"
	"strconv"
	"testing"

	"go.uber.org/fx"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

func memory() fxlock.Option { return fxlock.WithStore(fxlock.NewMemoryStore()) }

func newErr(opts ...fx.Option) error { return fx.New(append(opts, fx.NopLogger)...).Err() }

func TestModule_TwoLocksInOneApplication(t *testing.T) {
	var p struct {
		fx.In
		Unnamed    *fxlock.Lock
		Nightly    *fxlock.Lock `name:"nightly"`
		Migrations *fxlock.Lock `name:"migrations"`
	}
	store := fxlock.NewMemoryStore()
	started(t, fx.Populate(&p),
		fxlock.Module(key, fxlock.WithStore(store)),
		fxlock.Module("migrations", fxlock.Named(), fxlock.WithStore(store)))
	if p.Unnamed != p.Nightly || p.Nightly == p.Migrations {
		t.Errorf("unnamed %p, nightly %p, migrations %p", p.Unnamed, p.Nightly, p.Migrations)
	}
	must(t, p.Nightly.Run(t.Context(), func(ctx context.Context, outer lockfx.Token) error {
		return p.Migrations.Run(ctx, func(ctx context.Context, inner lockfx.Token, h lockfx.Holder) {
			if lockfx.TokenFrom(ctx) != inner || h.Key() != "migrations" || !p.Nightly.Held() || p.Nightly.Token() != outer {
				t.Errorf("inner %v of %q, outer %v", inner, h.Key(), outer)
			}
		})
	}))
}

// A feature keeps its lock to itself; another one may have the same name.
func TestPrivate_LocksOfTwoFeatures(t *testing.T) {
	type First func(context.Context) error
	type Second func(context.Context) error
	store := fxlock.NewMemoryStore()
	seen := map[string]int{}
	feature := func(name string, handler any, body fxlock.Option) fx.Option {
		return fx.Module(name,
			fx.Supply(fx.Private, &DB{name}),
			fxlock.Module(key, fxlock.Private(), body,
				fxlock.StoreFrom(func() lockfx.Store { return store })),
			fx.Provide(handler))
	}
	count := func(db *DB) error { seen[db.Name]++; return nil }
	opts := []fx.Option{
		feature("first", fx.Annotate(func(f First, _ *fxlock.Lock) First { return f }, fx.ResultTags(`name:"handler"`)), fxlock.Body[First](count)),
		feature("second", fx.Annotate(func(f Second, _ *fxlock.Lock) Second { return f }, fx.ResultTags(`name:"handler"`)), fxlock.Body[Second](count)),
	}
	var p struct {
		fx.In
		First  First  `name:"handler"`
		Second Second `name:"handler"`
	}
	must(t, fxlock.Validate(opts...))
	started(t, append(opts, fx.Populate(&p))...)
	must(t, p.First(t.Context()))
	must(t, p.Second(t.Context()))
	if seen["first"] != 1 || seen["second"] != 1 {
		t.Errorf("the bodies saw %v", seen)
	}
	var lock *fxlock.Lock
	wantText(t, newErr(append(opts, fx.Populate(&lock))...), "missing type: *fxlock.Lock")
	var f First
	wantText(t, newErr(append(opts, fx.Populate(&f))...), "missing type: fxlock_test.First")
}

// What a test puts in place of an F has nothing built behind it.
func TestReplace_OfAnFBuildsNothingBehindIt(t *testing.T) {
	never := func() *DB { t.Error("the DB was built"); return nil }
	store := func() lockfx.Store { t.Error("the store was built"); return nil }
	called := 0
	var nightly Nightly
	started(t, fx.Provide(never), fx.Populate(&nightly),
		fxlock.Module(key, fxlock.StoreFrom(store), fxlock.Body[Nightly](func(*DB) error { return errBody })),
		fx.Replace(Nightly(func(context.Context) error { called++; return nil })))
	must(t, nightly(t.Context()))
	if called != 1 {
		t.Errorf("called %d times", called)
	}
}

func TestReplace_OfTheStore(t *testing.T) {
	var j journal
	never := func() lockfx.Store { t.Error("the store was built"); return nil }
	spy := newSpyStore(&j)
	var lock *fxlock.Lock
	started(t, fx.Provide(never), fx.Populate(&lock), fxlock.Module(key, fxlock.StoreFromGraph()),
		fx.Replace(fx.Annotate(spy, fx.As(new(lockfx.Store)))))
	must(t, lock.Run(t.Context(), func() { j.add("body") }))
	j.expect(t, "acquire", "body", "release")
}

func TestDecorate_OfStoreLockAndF(t *testing.T) {
	var j journal
	var lock *fxlock.Lock
	var nightly Nightly
	started(t, fx.Provide(func() lockfx.Store { return fxlock.NewMemoryStore() }),
		fx.Decorate(func(s lockfx.Store) lockfx.Store {
			spy := newSpyStore(&j)
			spy.MemoryStore = s.(*fxlock.MemoryStore)
			return spy
		}),
		fx.Decorate(func(n Nightly) Nightly {
			return func(ctx context.Context) error { j.add("before"); return n(ctx) }
		}),
		fx.Decorate(func(l *fxlock.Lock) *fxlock.Lock { j.add("lock"); return l }),
		fxlock.Module(key, fxlock.StoreFromGraph(), fxlock.Body[Nightly](func() error { j.add("body"); return nil })),
		fx.Populate(&nightly, &lock))
	must(t, nightly(t.Context()))
	j.expect(t, "lock", "before", "acquire", "body", "release")
}

// A lock of a test in place of the application's: its bodies run under that one.
func TestReplace_OfTheLock(t *testing.T) {
	var j journal
	other := newLock(t, newSpyStore(&j))
	var nightly Nightly
	started(t, fx.Populate(&nightly),
		fxlock.Module(key, fxlock.StoreFrom(func() lockfx.Store { t.Error("the store was built"); return nil }),
			fxlock.Body[Nightly](func(lockfx.Token) error { j.add("body"); return nil })),
		fx.Replace(fx.Annotate(other, fx.ResultTags(`name:"nightly"`))))
	must(t, nightly(t.Context()))
	j.expect(t, "acquire", "body", "release")
}

// One option value serves two applications, at once and one after the other.
func TestModule_OneOptionServesManyApplications(t *testing.T) {
	store := fxlock.NewMemoryStore()
	module := fxlock.Module(key, fxlock.WithStore(store), fxlock.PerRun(newWriter),
		fxlock.Body[Nightly](func(*DB, *Writer) error { return nil }))
	for range 2 {
		t.Run("", func(t *testing.T) {
			var a, b Nightly
			started(t, fx.Provide(newDB), module, fx.Populate(&a))
			started(t, fx.Provide(newDB), module, fx.Populate(&b))
			must(t, a(t.Context()))
			must(t, b(t.Context()))
		})
	}
	body := fxlock.Body[Nightly](func() error { return nil }) // an option of two locks
	var p struct {
		fx.In
		A, B *fxlock.Lock `optional:"true"`
	}
	started(t, fx.Populate(&p), fx.Module("a", fxlock.Module("a", memory(), fxlock.Private(), body)),
		fx.Module("b", fxlock.Module("b", memory(), fxlock.Private(), body)))
}

// An application that is stopped and started again has its locks again, and their
// tokens go on rising, whatever the store says.
func TestModule_CanBeStartedAgain(t *testing.T) {
	store := newSpyStore(new(journal))
	var lock *fxlock.Lock
	var nightly Nightly
	var tokens []lockfx.Token
	app := fx.New(fx.NopLogger, fx.Populate(&lock, &nightly),
		fxlock.Module(key, fxlock.WithStore(store), fxlock.Body[Nightly](func(token lockfx.Token) error {
			tokens = append(tokens, token)
			return nil
		})))
	ctx := t.Context()
	for range 3 {
		must(t, app.Start(ctx))
		must(t, nightly(ctx))
		must(t, app.Stop(ctx))
		wantIs(t, nightly(ctx), lockfx.ErrDisposed)
		wantIs(t, lock.Run(ctx, func() {}), lockfx.ErrDisposed)
		wantIs(t, lock.Do(ctx, func(context.Context, lockfx.Holder) error { return nil }), lockfx.ErrDisposed)
	}
	if tokens[0] >= tokens[1] || tokens[1] >= tokens[2] {
		t.Errorf("tokens %v do not rise", tokens)
	}
	must(t, app.Start(ctx))
	store.acquire = func(g lockfx.Grant, err error) (lockfx.Grant, error) { g.Token = tokens[2]; return g, err }
	wantIs(t, nightly(ctx), lockfx.ErrFenceRegressed)
	must(t, app.Stop(ctx))
}

// Any name that can be a key can be the name of a lock and of everything in it.
func TestModule_QuotesNames(t *testing.T) {
	for _, name := range []string{"nightly", `with "quotes"`, "with `backticks`", `back\slash`, "a,b", "ключ", "line\nbreak", "\u2028", " ", "optional:\"true\""} {
		t.Run(name, func(t *testing.T) {
			checkName(t, name)
			checkName(t, strconv.Quote(name))
		})
	}
}

// checkName runs a lock called name with every option that puts a name into the
// graph.
func checkName(t *testing.T, name string) {
	t.Helper()
	var nightly Nightly
	var lock *fxlock.Lock
	seen := false
	app := fx.New(fx.NopLogger, fx.Populate(&nightly, &lock),
		fx.Provide(fx.Annotated{Name: "db", Target: newDB}),
		fxlock.Module(name, fxlock.StoreFrom(func() lockfx.Store { return fxlock.NewMemoryStore() }),
			fxlock.WithTokenName(name), fxlock.WithHolderName(name+"."), fxlock.WithLabel(name), fxlock.Share[*DB]("db"),
			fxlock.Body[Nightly](func(s *fxlock.Scope, h lockfx.Holder) error {
				token, err := fxlock.Get[lockfx.Token](s, name)
				seen = token == h.Token() && h.Key() == name
				return err
			})))
	must(t, app.Err())
	must(t, app.Start(t.Context()))
	must(t, nightly(t.Context()))
	if !seen || lock.Key() != name {
		t.Errorf("the body of %q saw another fence", name)
	}
	must(t, app.Stop(t.Context()))
}
