package fxlock_test

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

// here returns file:line of its caller, and of the lines below it.
func here(below int) string {
	_, file, line, _ := runtime.Caller(1)
	return fmt.Sprintf("%s:%d", filepath.Base(file), line+below)
}

func TestOptions_PrintAsTheyAreWritten(t *testing.T) {
	for want, o := range map[string]fmt.Stringer{
		`fxlock.WithKey("a\"b")`:                         fxlock.WithKey(`a"b`),
		"fxlock.WithTTL(1m30s)":                          fxlock.WithTTL(90 * time.Second),
		"fxlock.WithHeartbeat(5s)":                       fxlock.WithHeartbeat(5 * time.Second),
		"fxlock.WithReleaseTimeout(1s)":                  fxlock.WithReleaseTimeout(time.Second),
		"fxlock.WithTeardownTimeout(1ms)":                fxlock.WithTeardownTimeout(time.Millisecond),
		"fxlock.WithRenewRetry()":                        fxlock.WithRenewRetry(),
		"fxlock.WithClock(nil)":                          fxlock.WithClock(nil),
		"fxlock.WithClock(lockfx.systemClock)":           fxlock.WithClock(lockfx.SystemClock()),
		`fxlock.WithTokenName("t")`:                      fxlock.WithTokenName("t"),
		`fxlock.WithHolderName("h")`:                     fxlock.WithHolderName("h"),
		"fxlock.WithOnLost(nil)":                         fxlock.WithOnLost(nil),
		"fxlock.WithOnLost(func)":                        fxlock.WithOnLost(func(lockfx.Reason) {}),
		"fxlock.Observer(nil)":                           fxlock.Observer(nil),
		"fxlock.Observer(func)":                          fxlock.Observer(func(lockfx.Event) {}),
		"fxlock.WithLogger(nil)":                         fxlock.WithLogger(nil),
		"fxlock.WithLogger(*zap.Logger)":                 fxlock.WithLogger(zap.NewNop()),
		`fxlock.WithLabel("l")`:                          fxlock.WithLabel("l"),
		"fxlock.Named()":                                 fxlock.Named(),
		"fxlock.Private()":                               fxlock.Private(),
		"fxlock.WithStore(nil)":                          fxlock.WithStore(nil),
		"fxlock.WithStore(*fxlock_test.spyStore)":        fxlock.WithStore(newSpyStore(nil)),
		"fxlock.WithStore(*fxlock.MemoryStore)":          fxlock.WithStore(fxlock.NewMemoryStore()),
		"fxlock.StoreFrom(fxlock_test.newStore)":         fxlock.StoreFrom(newStore),
		"fxlock.StoreFromGraph()":                        fxlock.StoreFromGraph(),
		`fxlock.StoreFromGraph("redis")`:                 fxlock.StoreFromGraph("redis"),
		"fxlock.Share[*fxlock_test.DB]()":                fxlock.Share[*DB](),
		`fxlock.Share[*fxlock_test.DB]("ro")`:            fxlock.Share[*DB]("ro"),
		`fxlock.ShareGroup[fxlock_test.Route]("routes")`: fxlock.ShareGroup[Route]("routes"),
		"fxlock.PerRun()":                                fxlock.PerRun(),
		"fxlock.PerRun(fxlock_test.newDB, fxlock_test.newWriter, fxlock_test.newDB)": fxlock.PerRun(
			newDB, fx.Annotated{Name: "w", Target: newWriter}, fx.Annotate(newDB, fx.ResultTags(`name:"d"`))),
		"fxlock.Body[fxlock_test.Nightly](fxlock_test.rebuild)":                        fxlock.Body[Nightly](rebuild),
		`fxlock.Body[fxlock_test.Nightly](fxlock_test.rebuild, fxlock.WithLabel("l"))`: fxlock.Body[Nightly](rebuild, fxlock.WithLabel("l")),
		"fxlock.Config{}": fxlock.Config{},
		`fxlock.Config{Key: "k", TTL: 1m0s, Named: true}`: fxlock.Config{Key: "k", TTL: time.Minute, Named: true},
		"fxlock.MemoryStoreClock(func)":                   fxlock.MemoryStoreClock(time.Now),
		"fxlock.MemoryStoreClock(nil)":                    fxlock.MemoryStoreClock(nil),
	} {
		if got := o.String(); got != want {
			t.Errorf("printed as %s, want %s", got, want)
		}
	}
}

func rebuild(lockfx.Token) error { return nil }

func newStore() lockfx.Store { return fxlock.NewMemoryStore() }

// A faulty configuration shows all its faults at once, each with its rule.
func TestModule_ReportsAllFaultsAtOnce(t *testing.T) {
	type Unnamed = func(context.Context) error
	type (
		NoContext  func() error
		NoError    func(context.Context)
		Variadic   func(context.Context, ...int) error
		Twice      func(context.Context, int, int) error
		TwoContext func(context.Context, context.Context) error
		Input      func(context.Context, int) error
		Bound      func(context.Context, lockfx.Token) error
		Result     func(context.Context) (int, error)
		Results    func(context.Context) (int, error)
	)
	line := here(1)
	err := newErr(fxlock.Module("", nil,
		fxlock.WithTTL(-time.Second), fxlock.WithHeartbeat(0), fxlock.WithReleaseTimeout(-1), fxlock.WithTeardownTimeout(0),
		fxlock.WithTokenName(""), fxlock.WithHolderName("lock:fence"), fxlock.WithStore(nil),
		fxlock.WithStore((*spyStore)(nil)), fxlock.StoreFromGraph("a", "b"), fxlock.StoreFrom(newDB), fxlock.StoreFrom(nil),
		fxlock.StoreFrom(fx.Annotate(newStore, fx.As(new(lockfx.Store)))), fxlock.StoreFrom(fx.Annotate(newStore, fx.ParamTags("x"))),
		fxlock.WithOnLost(nil), fxlock.Observer(nil), fxlock.WithLogger(nil), fxlock.WithClock((*brokenClock)(nil)),
		fxlock.Share[*DB]("a", "b"), fxlock.ShareGroup[Route](""), fxlock.ShareGroup[Route]("a,soft"),
		fxlock.PerRun(nil, 7, (func() *DB)(nil), newDB, newDB, fx.Annotate(newDB, fx.ResultTags("x"))),
		fxlock.PerRun(func() lockfx.Token { return 1 }),
		fxlock.Body[Unnamed](rebuild), fxlock.Body[int](rebuild), fxlock.Body[Nightly](nil), fxlock.Body[Nightly](rebuild, nil),
		fxlock.Body[NoContext](rebuild), fxlock.Body[NoError](rebuild), fxlock.Body[Variadic](rebuild), fxlock.Body[Twice](rebuild),
		fxlock.Body[TwoContext](rebuild), fxlock.Body[Input](rebuild), fxlock.Body[Bound](rebuild), fxlock.Body[Result](rebuild),
		fxlock.Body[Results](func() (string, error) { return "", nil }),
		fxlock.Body[Nightly](func(error) error { return nil }),
	))
	wantIs(t, err, lockfx.ErrConfig)
	wantText(t, err,
		`fxlock.Module("") (`+line+`): `,
		`fxlock.Module(""): the name must not be empty`,
		"option 1 is nil",
		"fxlock.WithTTL(-1s): must be greater than 0",
		"fxlock.WithHeartbeat(0s): must be greater than 0",
		"fxlock.WithReleaseTimeout(-1ns): must be greater than 0",
		"fxlock.WithTeardownTimeout(0s): must be greater than 0",
		`fxlock.WithTokenName(""): must not be empty`,
		"the token and the holder need different names",
		"fxlock.WithStore(nil): must not be nil",
		"fxlock.WithStore(nil) already says where the store comes from",
		`fxlock.StoreFromGraph("a", "b"): takes one name at most`,
		"fxlock.StoreFrom(fxlock_test.newDB): func() *fxlock_test.DB must return a lockfx.Store and optionally an error",
		"fxlock.StoreFrom(<nil>): must be a constructor",
		"fxlock.StoreFrom(fxlock_test.newStore): func() struct { dig.Out; Field0 lockfx.Store } must return a lockfx.Store and optionally an error; leave out fx.As and fx.ResultTags",
		"tag key is invalid",
		"fxlock.WithOnLost(nil): must not be nil",
		"fxlock.Observer(nil): must not be nil",
		"fxlock.WithLogger(nil): must not be nil; zap.NewNop() is silent",
		"fxlock.WithClock(nil): must not be nil",
		`fxlock.Share[*fxlock_test.DB]("a", "b"): takes one name at most`,
		`fxlock.ShareGroup[fxlock_test.Route](""): the group must not be empty`,
		`fxlock_test.Route[group="a,soft"]`,
		"the scope of a run: ",
		"can't provide an untyped nil",
		"got 7 (type int)",
		"the func() *fxlock_test.DB is nil",
		"*fxlock_test.DB is already bound by constructor fxlock_test.newDB",
		"lockfx.Token is already bound by the run",
		"fxlock.Body[func(context.Context) error](fxlock_test.rebuild): func(context.Context) error must be a func type that you define",
		"fxlock.Body[int](fxlock_test.rebuild): int must be a func type that you define",
		"fxlock.Body[fxlock_test.Nightly](<nil>): must have a function to run",
		"fxlock.Body[fxlock_test.Nightly](fxlock_test.rebuild, <nil>): invalid configuration: run option 1 is nil",
		"fxlock_test.NoContext must take a context.Context first",
		"fxlock_test.NoError must return an error last",
		"fxlock_test.Variadic must not be variadic: take a slice",
		"fxlock_test.Twice takes int twice: inputs are distinguished by their types",
		"fxlock_test.TwoContext takes context.Context twice",
		"fxlock.Body[fxlock_test.Input](fxlock_test.rebuild): takes no int, which fxlock_test.Input has as an input",
		"lockfx.Token is already bound by the run",
		"func(lockfx.Token) error must return what fxlock_test.Result returns",
		"func() (string, error) must return what fxlock_test.Results returns",
		"body: error is an error, which no container holds",
	)
	if n := strings.Count(err.Error(), "lockfx.Token is already bound"); n != 2 { // once for PerRun, once for Bound
		t.Errorf("the fault of a constructor is told %d times", n)
	}
}

// brokenClock is a clock that is not there.
type brokenClock struct{ lockfx.Clock }

func TestNew_RejectsMistakes(t *testing.T) {
	_, err := fxlock.New()
	wantIs(t, err, lockfx.ErrConfig)
	wantText(t, err, `fxlock.New(""): `, `key "" must not be empty`, "fxlock.WithTTL: is required where there is no application")
	_, err = fxlock.New(fxlock.WithKey(key), fxlock.WithTTL(time.Minute), fxlock.WithHeartbeat(31*time.Second),
		fxlock.Named(), fxlock.Private(), fxlock.Share[*DB](), fxlock.ShareGroup[Route]("routes"), fxlock.StoreFromGraph(),
		fxlock.StoreFrom(newStore), fxlock.Body[Nightly](rebuild))
	wantText(t, err, `fxlock.New("nightly"): `, "heartbeat 31s must be at most half the ttl of 1m0s",
		"fxlock.Named(): needs an fx application: use fxlock.Module", "fxlock.Private(): needs", "fxlock.Share[*fxlock_test.DB](): needs",
		"fxlock.ShareGroup[fxlock_test.Route](\"routes\"): needs", "fxlock.StoreFromGraph(): needs",
		"fxlock.StoreFrom(fxlock_test.newStore): needs", "fxlock.Body[fxlock_test.Nightly](fxlock_test.rebuild): needs")
	_, err = fxlock.New(fxlock.WithKey(key), fxlock.WithTTL(time.Minute), fxlock.PerRun(newWriter))
	wantText(t, err, `*fxlock_test.DB does not reach the run: add fxlock.PerRun to fxlock.New("nightly"), or use fxlock.Module`)
}

// A constructor that no run could ever build is an error of fx.New, not of the
// first run.
func TestPerRun_MissingDependencyIsAnErrorOfNew(t *testing.T) {
	const want = `*fxlock_test.DB does not reach the run: add fxlock.Share[*fxlock_test.DB]() or fxlock.PerRun to fxlock.Module("nightly")`
	wantText(t, newErr(fxlock.Module(key, memory(), fxlock.PerRun(newWriter))), want)
	for _, opts := range [][]fxlock.Option{
		options(memory(), fxlock.PerRun(newWriter), fxlock.Share[*DB]()),
		options(memory(), fxlock.PerRun(newWriter, newDB)),
		options(memory(), fxlock.PerRun(func(*zap.Logger) *DB { return nil })),
	} {
		noError(t, newErr(fxlock.Module(key, opts...)))
	}
}

// What a run binds by itself, and its own lock, can't be shared: the hint is another one.
func TestRun_HintsForWhatCannotBeShared(t *testing.T) {
	type misspelt struct {
		fx.In
		Token lockfx.Token `name:"lock:token"`
	}
	var lock *fxlock.Lock
	app := fx.New(fx.NopLogger, fxlock.Module(key, memory()), fx.Populate(&lock))
	noError(t, app.Err())
	wantText(t, lock.Run(t.Context(), func(misspelt) {}),
		`lockfx.Token[name="lock:token"] does not reach the run: a run binds it unnamed; the token also as name:"lock:fence", and the holder`)
	wantText(t, lock.Run(t.Context(), func(*fxlock.Lock) {}), "*fxlock.Lock does not reach the run: a run has no use for its own lock")
	type other struct {
		fx.In
		Lock *fxlock.Lock `name:"other"`
	}
	wantText(t, lock.Run(t.Context(), func(other) {}), `add fxlock.Share[*fxlock.Lock]("other")`)
}

// What a body or a constructor asks for in vain is told with its type, the lock,
// the place and the hint: by fx.New, by fx.ValidateApp and by fxlock.Validate.
func TestBody_MissingDependencyHasPlaceAndHint(t *testing.T) {
	var nightly Nightly
	for name, opts := range map[string][]fxlock.Option{
		"a body":        {fxlock.Body[Nightly](func(*DB) error { return nil })},
		"a constructor": {fxlock.Body[Nightly](func(*Writer) error { return nil }), fxlock.PerRun(newWriter)},
	} {
		t.Run(name, func(t *testing.T) {
			module := fxlock.Module(key, append(opts, memory())...)
			says := []string{
				"lock nightly, github.com/lockfx/lockfx/fxlock_test.Nightly; if a type is missing: fx.Provide it, or add its constructor to fxlock.PerRun",
				"missing type: *fxlock_test.DB", "messages_test.go:",
			}
			wantText(t, newErr(module, fx.Populate(&nightly)), says...)
			wantText(t, fx.ValidateApp(fx.NopLogger, module, fx.Invoke(func(Nightly) {})), says...)
			wantText(t, fxlock.Validate(module), append(says, "fxlock.Validate: ")...)
			noError(t, newErr(module)) // nobody takes it
			noError(t, fxlock.Validate(module, fx.Provide(newDB)))
		})
	}
}

func TestValidate_BuildsNothing(t *testing.T) {
	never := func() *DB { t.Error("was built"); return nil }
	opts := []fx.Option{
		fx.Provide(never), fxlock.Module(key, fxlock.StoreFrom(func(*DB) lockfx.Store { t.Error("was built"); return nil }),
			fxlock.Share[*DB](), fxlock.Body[Nightly](func(*DB) error { return nil })),
	}
	noError(t, fxlock.Validate(opts...))
	noError(t, fxlock.Validate())
	wantText(t, fxlock.Validate(fxlock.Module(key, fxlock.StoreFromGraph("redis"))),
		`*fxlock.Lock[name="nightly"]`, "lock nightly, fxlock.StoreFromGraph; if lockfx.Store is missing: fx.Provide one", "fxlock.StoreFrom",
		`missing type: lockfx.Store[name="redis"]`)
	wantText(t, fxlock.Validate(fxlock.Module(key, memory(), fxlock.Share[*DB]())), "missing type: *fxlock_test.DB")
	wantText(t, fxlock.Validate(fxlock.Module(key, memory(), fxlock.ShareGroup[Route]("r"), fxlock.WithTTL(-1))), "fxlock.WithTTL(-1ns)")
	wantText(t, fxlock.Validate(fxlock.Module(key, memory(), fxlock.WithTTL(30))), "fxlock.WithTTL(30ns): must be at least 1ms; is its unit missing?")
	noError(t, fxlock.Validate(fxlock.Module(key, memory(), fxlock.WithTTL(time.Millisecond))))
}

func TestModule_TakenNameIsReportedWithBothPlaces(t *testing.T) {
	alone := newLock(t, fxlock.NewMemoryStore())
	first, second := here(2), here(3)
	wantText(t, newErr(
		fxlock.Module(key, memory()),
		fxlock.Module(key, fxlock.Named(), memory()),
	), first, second, "a *fxlock.Lock called nightly", "fxlock.WithKey", "already provided by")
	first, second = here(2), here(3)
	wantText(t, newErr(
		fxlock.Module(key, memory()),
		fxlock.Bind(key, alone),
	), first, second, "a *fxlock.Lock called nightly", "fxlock.WithKey", "already provided by")
	first, second = here(2), here(3)
	wantText(t, newErr(fxlock.Module(key, memory(),
		fxlock.Body[Nightly](rebuild),
		fxlock.Body[Nightly](rebuild),
	)), first, second, "fxlock_test.Nightly", "already provided by")
	first, second = here(2), here(4)
	wantText(t, newErr(fxlock.Module(key, memory(),
		fxlock.Body[Nightly](rebuild)),
		fxlock.Module("b", fxlock.Named(), memory(),
			fxlock.Body[Nightly](rebuild)),
	), first, second, "fxlock_test.Nightly", "already provided by")
}

func TestBind_RejectsNilAndAnEmptyName(t *testing.T) {
	line := here(1)
	err := newErr(fxlock.Bind("", nil))
	wantIs(t, err, lockfx.ErrConfig)
	wantText(t, err, `fxlock.Bind("") (`+line+`): `, "the name must not be empty and the lock not nil")
	wantIs(t, newErr(fxlock.Bind("a", nil)), lockfx.ErrConfig)
}
