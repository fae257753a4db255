package fxlock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/fx"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

// The leader is declared first, so fx builds and starts it first, unless it says that it
// begins after the job.
func TestAfter_ALeaderBeginsAfterTheJob(t *testing.T) {
	for name, tt := range map[string]struct {
		opts  []fxlock.LeadOption
		first string
	}{
		"After":   {[]fxlock.LeadOption{fxlock.After[Migrated]()}, "migrate"},
		"without": {nil, "lead"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				var j journal
				store := fxlock.NewMemoryStore()
				for range 2 {
					started(t,
						fxlock.Module("dispatcher", fxlock.Named(), fxlock.WithStore(store),
							fxlock.Lead(func(ctx context.Context) error { j.add("lead"); return untilToldTo(ctx) }, tt.opts...)),
						fxlock.Module("migrations", fxlock.Named(), fxlock.WithStore(store),
							fxlock.OnStart[Migrated](func() { time.Sleep(time.Second); j.add("migrate") })))
				}
				synctest.Wait()
				if all := j.all(); len(all) != 3 || all[0] != tt.first {
					t.Errorf("what happened: %q", all)
				}
			})
		})
	}
}

// A job that fails leaves no leader behind.
func TestAfter_AJobThatFailsLeavesNoLeader(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		app := fx.New(fx.NopLogger,
			fxlock.Module("dispatcher", fxlock.Named(), memory(), fxlock.Lead(func() { t.Error("it led") }, fxlock.After[Migrated]())),
			fxlock.Module("migrations", fxlock.Named(), memory(), fxlock.OnStart[Migrated](func() error { return errBody })))
		wantIs(t, app.Start(t.Context()), errBody)
		time.Sleep(time.Minute)
	})
}

// What takes the func of a body, and another job, start after the job as well.
func TestAfter_OrdersBodiesAndJobs(t *testing.T) {
	type Seeded struct{}
	var j journal
	started(t,
		fxlock.Module(key, memory(),
			fxlock.Body[Nightly](func(context.Context) error { j.add("nightly"); return nil }, fxlock.After[Seeded]()),
			fxlock.OnStart[Seeded](func() { j.add("seed") }, fxlock.After[Migrated]()),
			fxlock.OnStart[Migrated](func() { j.add("migrate") })),
		fx.Invoke(func(lc fx.Lifecycle, nightly Nightly) {
			lc.Append(fx.StartHook(func(ctx context.Context) error { return nightly(ctx) }))
		}))
	j.expect(t, "migrate", "seed", "nightly")
}

func TestAfter_RejectsMistakes(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"no job":          {newErr(fxlock.Module(key, memory(), fxlock.Lead(func() {}, fxlock.After[Migrated]()))), "missing type: fxlock_test.Migrated"},
		"no marker":       {newErr(fxlock.Module(key, memory(), fxlock.Lead(func() {}, fxlock.After[int]()))), "fxlock.After[int](): invalid configuration: int must be a marker type that you define"},
		"no marker, not":  {newErr(fxlock.Module(key, memory(), fxlock.Lead(func() {}, fxlock.NotAfter[int]()))), "fxlock.NotAfter[int](): invalid configuration: int must be a marker"},
		"of a body":       {newErr(fxlock.Module(key, memory(), fxlock.OnStart[Migrated](func() {}, fxlock.After[error]()))), "fxlock.After[error](): invalid configuration: error must be a marker"},
		"of a module":     {newErr(fxlock.Module(key, memory(), fxlock.After[Migrated]())), "fxlock.After[fxlock_test.Migrated](): is for a fxlock.Body, an OnStart or a Lead"},
		"of a single run": {newLock(t, fxlock.NewMemoryStore()).Run(t.Context(), func() {}, fxlock.After[Migrated]()), "fxlock.After is for a fxlock.Body, an OnStart or a Lead"},
		"of a single Do": {
			newLock(t, fxlock.NewMemoryStore()).Do(t.Context(), func(context.Context, lockfx.Holder) error { return nil }, fxlock.After[Migrated]()),
			"fxlock.After is for",
		},
	} {
		t.Run(name, func(t *testing.T) { wantText(t, tt.err, tt.want) })
	}
}

// An application with a leader and a job of the start says in which order they begin.
func TestValidate_WantsAnOrderBetweenLeadAndOnStart(t *testing.T) {
	type Seeded struct{}
	lead := func(fn any, opts ...fxlock.LeadOption) fx.Option {
		return fxlock.Module("dispatcher", fxlock.Named(), memory(), fxlock.Lead(fn, opts...))
	}
	migrates := fxlock.Module("migrations", fxlock.Named(), memory(), fxlock.OnStart[Migrated](func() {}))
	seeds := fxlock.Module("seeds", fxlock.Named(), memory(), fxlock.OnStart[Seeded](func() {}))
	const missing = `the fxlock.Lead of lock "dispatcher" may begin before fxlock.OnStart[fxlock_test.Migrated]: ` +
		`add fxlock.After[fxlock_test.Migrated]() to it, or fxlock.NotAfter[fxlock_test.Migrated]() if it need not wait`
	for name, tt := range map[string]struct {
		app  fx.Option
		want string
	}{
		"neither":                   {fx.Options(), ""},
		"a leader alone":            {lead(func() {}), ""},
		"a job alone":               {migrates, ""},
		"both":                      {fx.Options(lead(func() {}), migrates), missing},
		"both, the other way round": {fx.Options(migrates, lead(func() {})), missing},
		"of one module":             {fxlock.Module("dispatcher", memory(), fxlock.Lead(func() {}), fxlock.OnStart[Migrated](func() {})), missing},
		"deep inside":               {fx.Options(fx.Module("a", fx.Options(lead(func() {}))), fx.Module("b", migrates)), missing},
		"private": {
			fx.Options(lead(func() {}), fx.Module("b", fxlock.Module("migrations", fxlock.Private(), memory(), fxlock.OnStart[Migrated](func() {})))),
			missing,
		},
		"After":               {fx.Options(lead(func() {}, fxlock.After[Migrated]()), migrates), ""},
		"NotAfter":            {fx.Options(lead(func() {}, fxlock.NotAfter[Migrated]()), migrates), ""},
		"fn takes the marker": {fx.Options(lead(func(Migrated) {}), migrates), ""},
		"one of two":          {fx.Options(lead(func() {}, fxlock.After[Seeded]()), migrates, seeds), missing},
		"both of two":         {fx.Options(lead(func() {}, fxlock.After[Seeded](), fxlock.After[Migrated]()), migrates, seeds), ""},
		"by way of something that fn takes": {
			fx.Options(lead(func(*DB) {}), migrates, fx.Provide(func(Migrated) *DB { return newDB() })),
			missing,
		},
		"beside another fault": {fx.Options(lead(func(*DB) {}), migrates), missing},
	} {
		t.Run(name, func(t *testing.T) {
			err := fxlock.Validate(tt.app)
			if tt.want == "" {
				noError(t, err)
				return
			}
			wantIs(t, err, lockfx.ErrConfig)
			wantText(t, err, "fxlock.Validate: ", tt.want)
		})
	}
}
