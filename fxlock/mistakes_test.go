package fxlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/fx"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

// What people get wrong, each with the words that help, and none that mislead.
func TestMistakes_GetTheHintThatHelps(t *testing.T) {
	type (
		client   struct{}
		misspelt struct {
			fx.In
			Lock *fxlock.Lock `name:"nihgtly"`
		}
		misspeltLead struct {
			fx.In
			Lead *fxlock.Leadership `name:"nihgtly"`
		}
		wrongToken struct {
			fx.In
			Token lockfx.Token `name:"lock:token"`
		}
	)
	module := func(opts ...fxlock.Option) fx.Option { return fxlock.Module(key, append(opts, memory())...) }
	noURL := errors.New("DATABASE_URL is not set")
	noClient := fx.Provide(func() (*client, error) { return nil, noURL })
	storeOf := func(*client) lockfx.Store { return fxlock.NewMemoryStore() }
	takesDB := func(*DB) error { return nil }
	lock, nightly := fx.Invoke(func(*fxlock.Lock) {}), fx.Invoke(func(Nightly) {})
	do := func(opts ...fxlock.RunOption) error {
		return newLock(t, fxlock.NewMemoryStore()).Do(t.Context(), workNothing, opts...)
	}
	run := func(body any, opts ...fxlock.Option) error {
		var l *fxlock.Lock
		must(t, newErr(module(opts...), fx.Populate(&l)))
		return l.Run(t.Context(), body)
	}
	decode := func(from map[string]any) error { _, err := fxlock.DecodeConfig(from); return err }
	never := []string{"fx.Provide one", "fx.Provide it"}
	noDB := fx.Provide(func() (*DB, error) { return nil, noURL })

	for name, m := range map[string]struct {
		err  error
		hint string
		not  []string // words that would be wrong unless they stand behind "missing:"
	}{
		"a client behind StoreFrom fails":      {newErr(noClient, fxlock.Module(key, fxlock.StoreFrom(storeOf)), lock), noURL.Error(), never},
		"a client behind StoreFromGraph fails": {newErr(noClient, fx.Provide(storeOf), fxlock.Module(key, fxlock.StoreFromGraph()), lock), noURL.Error(), never},
		"a value behind a Body fails":          {newErr(noDB, module(fxlock.Body[Nightly](takesDB)), nightly), noURL.Error(), never},
		"a value behind a Share fails":         {newErr(noDB, module(fxlock.Share[*DB]()), lock), noURL.Error(), never},
		"a store's constructor returns nil":    {newErr(fxlock.Module(key, fxlock.StoreFrom(func() lockfx.Store { return nil })), lock), "returned a nil store", never},
		"the graph has no store":               {newErr(fxlock.Module(key, fxlock.StoreFromGraph()), lock), "if lockfx.Store is missing: fx.Provide one", nil},
		"the graph has a concrete store": {
			newErr(fx.Provide(func() *fxlock.MemoryStore { return fxlock.NewMemoryStore() }), fxlock.Module(key, fxlock.StoreFromGraph()), lock),
			"by fx.As if its constructor returns another type", nil,
		},
		"the store's client is missing":        {newErr(fxlock.Module(key, fxlock.StoreFrom(storeOf)), lock), "missing type: *fxlock_test.client", nil},
		"a Body's value is missing":            {newErr(module(fxlock.Body[Nightly](takesDB)), nightly), "if a type is missing: fx.Provide it", nil},
		"a Share's value is missing":           {newErr(module(fxlock.Share[*DB]()), lock), "missing type: *fxlock_test.DB", nil},
		"a Share is missing":                   {run(takesDB), "add fxlock.Share[*fxlock_test.DB]() or fxlock.PerRun to fxlock.Module(\"nightly\")", nil},
		"a body takes its own lock":            {run(func(*fxlock.Lock) {}), "a run has no use for its own lock", []string{"fxlock.Share"}},
		"a body takes a token by a wrong name": {run(func(wrongToken) {}), `the token also as name:"lock:fence"`, []string{"fxlock.Share"}},
		"a second Body for one type": {
			newErr(module(fxlock.Body[Nightly](rebuild), fxlock.Body[Nightly](rebuild))), "define another type for the second fxlock.Body", nil,
		},
		"a second OnStart for one marker": {
			newErr(module(fxlock.OnStart[Migrated](func() {}), fxlock.OnStart[Migrated](func() {}))), "define another type for the second fxlock.OnStart", nil,
		},
		"a second unnamed lock":       {newErr(module(), fxlock.Module("b", memory())), "give every additional module fxlock.Named()", nil},
		"a second lock of one name":   {newErr(module(), module(fxlock.Named())), "give the second one another name", nil},
		"a misspelt lock":             {fxlock.Validate(module(), fx.Invoke(func(misspelt) {})), `the name "nihgtly" is unknown; did you mean "nightly"?`, nil},
		"a misspelt leadership":       {fxlock.Validate(module(fxlock.Lead(func() {})), fx.Invoke(func(misspeltLead) {})), `did you mean "nightly"?`, nil},
		"no lock is unnamed":          {fxlock.Validate(module(fxlock.Named()), lock), `inject it by name, such as name:"nightly"`, nil},
		"no module":                   {fxlock.Validate(lock), "no fxlock.Module is among the options", nil},
		"a leadership without a Lead": {fxlock.Validate(module(), fx.Invoke(func(*fxlock.Leadership) {})), "fxlock.Lead provides it", nil},
		"a token outside of a run": {
			fxlock.Validate(module(), fx.Provide(func(lockfx.Token) *DB { return nil }), fx.Invoke(takesDB)), "a run alone binds lockfx.Token: add the constructor to fxlock.PerRun", nil,
		},
		"a ttl without a unit":          {newErr(module(fxlock.WithTTL(30))), "fxlock.WithTTL(30ns): must be at least 1ms; is its unit missing?", []string{"heartbeat"}},
		"a ttl of 1 ns":                 {newErr(module(fxlock.WithTTL(1))), "is its unit missing?", []string{"heartbeat"}},
		"a wait without a unit":         {do(fxlock.Wait(5)), "fxlock.Wait(5ns): must be at least 1ms; is its unit missing?", nil},
		"a negative wait":               {do(fxlock.Wait(-time.Second)), "fxlock.WaitForever has no limit", nil},
		"a heartbeat that is too long":  {newErr(module(fxlock.WithHeartbeat(20 * time.Second))), "heartbeat 20s must be at most half the ttl of 30s", nil},
		"a Body of a plain func type":   {newErr(module(fxlock.Body[func(context.Context) error](rebuild))), "such as: type Nightly func(context.Context) error", nil},
		"an annotated body":             {newErr(module(fxlock.Body[Nightly](fx.Annotate(rebuild)))), "an fx.In struct tags parameters as well", nil},
		"no ttl without an application": {func() error { _, err := fxlock.New(fxlock.WithKey(key)); return err }(), "fxlock.WithTTL: is required where there is no application", nil},
		"an option of an application in New": {func() error {
			_, err := fxlock.New(fxlock.WithKey(key), fxlock.WithTTL(ttl), fxlock.Named())
			return err
		}(), "use fxlock.Module", nil},
		"a number for a duration in a file": {decode(map[string]any{"ttl": 30}), `must be a duration with a unit, such as "30s"`, nil},
		"a misspelt name in a file":         {decode(map[string]any{"hartbeat": "1s"}), `did you mean "heartbeat"?`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			wantText(t, m.err, m.hint)
			unconditional := strings.ReplaceAll(m.err.Error(), "missing: fx.Provide", "")
			for _, word := range m.not {
				if strings.Contains(unconditional, word) {
					t.Errorf("%q misleads in: %v", word, m.err)
				}
			}
		})
	}
}

// Each of several faults names its module and its place.
func TestFaults_EachNameTheirModule(t *testing.T) {
	line := here(1)
	err := newErr(fxlock.Module(key, memory(), fxlock.WithTTL(-1), fxlock.WithHeartbeat(-1), fxlock.Body[Nightly](nil)))
	lines := strings.Split(err.Error(), "\n")
	for _, l := range lines {
		if !strings.HasPrefix(l, `fxlock.Module("nightly") (`+line+`): `) {
			t.Errorf("%q does not name its module", l)
		}
	}
	if len(lines) != 3 {
		t.Errorf("%d lines for three faults: %v", len(lines), err)
	}
}
