package fxlock_test

import (
	"context"
	"reflect"
	"testing"

	"go.uber.org/fx"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

// everything is all that a run binds, in one parameter object.
type everything struct {
	fx.In
	Tokens
	Context     context.Context
	Holder      lockfx.Holder
	NamedHolder lockfx.Holder `name:"lock:holder"`
	Lifecycle   fx.Lifecycle
	Scope       *fxlock.Scope
	Logger      *zap.Logger `optional:"true"`
}

// Tokens is embedded, as parameter objects may be.
type Tokens struct {
	fx.In
	Token      lockfx.Token
	NamedToken lockfx.Token `name:"lock:fence"`
}

func (e everything) check(t *testing.T) {
	t.Helper()
	if e.Token < 1 || e.NamedToken != e.Token || lockfx.TokenFrom(e.Context) != e.Token ||
		e.Holder.Token() != e.Token || e.NamedHolder != e.Holder || e.Holder.Key() != key || !e.Holder.Held() {
		t.Errorf("not one acquisition: %+v, context %v, holder %v", e.Tokens, lockfx.TokenFrom(e.Context), e.Holder.Token())
	}
	if _, own := e.Context.Value(appKey{}).(string); own {
		t.Error("the context is the application's own")
	}
	if reflect.TypeOf(e.Lifecycle).String() == "*fx.lifecycleWrapper" {
		t.Error("the lifecycle is the application's own")
	}
}

type appKey struct{}

// appOwns are values of an application that a run's shadow.
func appOwns() fx.Option {
	return fx.Provide(
		func() context.Context { return context.WithValue(context.Background(), appKey{}, "app") },
		func() lockfx.Token { return -1 },
		fx.Annotate(func() lockfx.Token { return -2 }, fx.ResultTags(`name:"lock:fence"`)),
	)
}

func TestRun_BindsItsOwnValues(t *testing.T) {
	for _, by := range []string{"Run", "Body", "PerRun", "Scope"} {
		t.Run(by, func(t *testing.T) {
			var seen everything
			hooks := 0
			see := func(e everything) {
				e.check(t)
				if by == "Run" || by == "Body" { // constructors take parameters
					byHand, err := fxlock.Get[lockfx.Token](e.Scope, "lock:fence")
					if byHand != e.Token || err != nil {
						t.Errorf("by hand: %v, %v", byHand, err)
					}
				}
				e.Lifecycle.Append(fx.StopHook(func() { hooks++ }))
				seen = e
			}
			var nightly Nightly
			lock := lockIn(t, fxlock.NewMemoryStore(), options(
				fxlock.PerRun(func(e everything) *Writer { see(e); return new(Writer) }),
				fxlock.Body[Nightly](func(e everything) error { see(e); return nil }),
			), appOwns(), fx.Populate(&nightly))
			run := map[string]func() error{
				"Run":    func() error { return lock.Run(t.Context(), see) },
				"Body":   func() error { return nightly(t.Context()) },
				"PerRun": func() error { return lock.Run(t.Context(), func(*Writer) {}) },
				"Scope": func() error {
					return lock.Run(t.Context(), func(s *fxlock.Scope) error { return s.Invoke(func(*Writer) {}) })
				},
			}[by]
			must(t, run())
			first := seen.Token
			must(t, run())
			if seen.Token <= first || hooks < 2 {
				t.Errorf("tokens %v, %v; %d hooks ran", first, seen.Token, hooks)
			}
			if seen.Context.Err() == nil || seen.Holder.Held() || seen.Holder.Token() != 0 {
				t.Error("the run's values outlive it")
			}
			if seen.Logger != nil {
				t.Error("there is a logger, of an application that has none")
			}
			_, err := fxlock.Get[lockfx.Token](seen.Scope)
			wantText(t, err, "the scope is closed: its run is over")
		})
	}
}

func TestWithTokenName_AndHolderNameRenameTheBindings(t *testing.T) {
	type in struct {
		fx.In
		Token  lockfx.Token  `name:"my fence"`
		Holder lockfx.Holder `name:"my \"holder\""`
	}
	type defaults struct {
		fx.In
		Token lockfx.Token `name:"lock:fence"`
	}
	lock := newLock(t, fxlock.NewMemoryStore(), fxlock.WithTokenName("my fence"), fxlock.WithHolderName(`my "holder"`))
	must(t, lock.Run(t.Context(), func(p in) {
		if p.Token < 1 || p.Holder.Token() != p.Token {
			t.Errorf("token %v, holder %v", p.Token, p.Holder.Token())
		}
	}))
	wantText(t, lock.Run(t.Context(), func(defaults) {}), `lockfx.Token[name="lock:fence"] does not reach the run`)
}

// The logger of a run says which run a line belongs to.
func TestRun_LoggerCarriesKeyAndFence(t *testing.T) {
	needs := func(log *zap.Logger, token lockfx.Token) { log.Info("inside", zap.Int64("want", int64(token))) }
	for name, give := range map[string]func(*zap.Logger) (fx.Option, fxlock.Option){
		"the application's": func(l *zap.Logger) (fx.Option, fxlock.Option) { return fx.Supply(l), nil },
		"the lock's own":    func(l *zap.Logger) (fx.Option, fxlock.Option) { return fx.Options(), fxlock.WithLogger(l) },
		"the lock's own, before the application's": func(l *zap.Logger) (fx.Option, fxlock.Option) {
			return fx.Supply(zap.NewNop()), fxlock.WithLogger(l)
		},
	} {
		t.Run(name, func(t *testing.T) {
			core, logs := observer.New(zapcore.InfoLevel)
			more, opt := give(zap.New(core))
			opts := options(fxlock.Body[Nightly](func(l *zap.Logger, token lockfx.Token) error { needs(l, token); return nil }))
			if opt != nil {
				opts = append(opts, opt)
			}
			var nightly Nightly
			lock := lockIn(t, fxlock.NewMemoryStore(), opts, more, fx.Populate(&nightly))
			must(t, lock.Run(t.Context(), needs))
			must(t, nightly(t.Context()))
			inside := logs.FilterMessage("inside").All()
			if len(inside) != 2 {
				t.Fatalf("%d lines, want 2", len(inside))
			}
			for _, line := range inside {
				if f := line.ContextMap(); f["key"] != key || f["fence"] != f["want"] || f["fence"] == int64(0) {
					t.Errorf("fields %v", f)
				}
			}
		})
	}
}

// A logger that is required and not there is an error, not a nil.
func TestRun_MissingLoggerIsAnError(t *testing.T) {
	lock := lockIn(t, fxlock.NewMemoryStore(), nil)
	err := lock.Run(t.Context(), func(*zap.Logger) { t.Error("the body ran") })
	wantText(t, err, `*zap.Logger does not reach the run: give the application one, or fxlock.WithLogger to fxlock.Module("nightly")`)
	var nightly Nightly
	app := fx.New(fx.NopLogger, fx.Populate(&nightly),
		fxlock.Module(key, fxlock.WithStore(fxlock.NewMemoryStore()), fxlock.Body[Nightly](func(*zap.Logger) error { return nil })))
	wantText(t, app.Err(), "missing type", "*zap.Logger")
}
