package fxlock_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"go.uber.org/dig"
	"go.uber.org/fx"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

// BenchmarkPrice is what a lock costs, beside what it is made of. Run it by
// scripts/bench.sh, which takes medians over interleaved rounds.
func BenchmarkPrice(b *testing.B) {
	for _, c := range priceCases(b) {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := c.run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

type priceCase struct {
	name string // scripts/bench.awk knows it
	run  func() error
}

// priceCases returns them in the order of rising cost.
func priceCases(tb testing.TB) []priceCase {
	ctx := context.Background()
	var mu sync.Mutex
	store := fxlock.NewMemoryStore()
	held, holder := priceHeld(tb)
	app := newPriceApp(tb)
	return []priceCase{
		{"Lock.State", func() error { readState = held.State(); return nil }},
		{"Lock.Held", func() error { readHeld = held.Held(); return nil }},
		{"Lock.Token", func() error { readToken = held.Token(); return nil }},
		{"Holder.State", func() error { readState = holder.State(); return nil }},
		{"Holder.Held", func() error { readHeld = holder.Held(); return nil }},
		{"Holder.Token", func() error { readToken = holder.Token(); return nil }},
		{"sync.Mutex", func() error { mu.Lock(); defer mu.Unlock(); return nil }},
		{"Store.Acquire+Release", func() error {
			grant, err := store.Acquire(ctx, "price", time.Minute)
			if err != nil {
				return err
			}
			_, err = store.Release(ctx, "price", grant.Token)
			return err
		}},
		{"Lock.Acquire+Release", func() error {
			if _, err := app.plain.Acquire(ctx); err != nil {
				return err
			}
			_, err := app.plain.Release(ctx)
			return err
		}},
		{"Lock.Do", app.do},
		{"dig.by.hand", app.digByHand},
		{"Lock.Run", app.run},
		{"Body", app.call},
		{"Lock.Run+PerRun", app.runPerRun},
	}
}

// What is read goes here, so that no read is left out by the compiler.
var (
	readState lockfx.State
	readHeld  bool
	readToken lockfx.Token
)

// priceHeld returns a lock that is held until the end of the test, and the holder
// of a run that lasts as long.
func priceHeld(tb testing.TB) (*fxlock.Lock, lockfx.Holder) {
	lock, err := fxlock.New(fxlock.WithKey("held"), fxlock.WithTTL(time.Hour), fxlock.WithStore(fxlock.NewMemoryStore()))
	if err != nil {
		tb.Fatal(err)
	}
	inside, enough, ended := make(chan lockfx.Holder), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- lock.Do(context.Background(), func(_ context.Context, h lockfx.Holder) error {
			inside <- h
			<-enough
			return nil
		})
	}()
	tb.Cleanup(func() {
		close(enough)
		if err := <-ended; err != nil {
			tb.Error(err)
		}
	})
	return lock, <-inside
}

type (
	priceDB     struct{ name string }
	priceRun    func(context.Context) error
	priceWriter struct {
		db    *priceDB
		fence lockfx.Token
	}
	priceReport struct{ writer *priceWriter }
	priceIn     struct {
		fx.In
		Fence  lockfx.Token `name:"lock:fence"`
		Report *priceReport
	}
)

// priceApp is an application with a lock that builds nothing per run, and one that
// builds two values with a hook each.
type priceApp struct {
	db    *priceDB
	plain *fxlock.Lock
	rich  *fxlock.Lock
	body  priceRun
}

func newPriceApp(tb testing.TB) *priceApp {
	p := &priceApp{db: &priceDB{name: "price"}}
	var locks struct {
		fx.In
		Plain *fxlock.Lock `name:"plain"`
		Rich  *fxlock.Lock `name:"rich"`
		Body  priceRun
	}
	app := fx.New(fx.NopLogger, fx.Supply(p.db),
		fxlock.Module("plain", fxlock.WithStore(fxlock.NewMemoryStore()),
			fxlock.Share[*priceDB](), fxlock.Body[priceRun](func(*priceDB, lockfx.Token) error { return nil })),
		fxlock.Module("rich", fxlock.Named(), fxlock.WithStore(fxlock.NewMemoryStore()),
			fxlock.Share[*priceDB](), fxlock.PerRun(newPriceWriter, newPriceReport)),
		fx.Populate(&locks))
	if err := app.Start(context.Background()); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := app.Stop(context.Background()); err != nil {
			tb.Error(err)
		}
	})
	p.plain, p.rich, p.body = locks.Plain, locks.Rich, locks.Body
	return p
}

func priceBody(*priceDB, lockfx.Token) {}

func newPriceWriter(lc fx.Lifecycle, db *priceDB, fence lockfx.Token) *priceWriter {
	lc.Append(fx.StopHook(func() {}))
	return &priceWriter{db, fence}
}

func newPriceReport(lc fx.Lifecycle, w *priceWriter) *priceReport {
	lc.Append(fx.StopHook(func() {}))
	return &priceReport{w}
}

func (p *priceApp) do() error {
	return p.plain.Do(context.Background(), func(context.Context, lockfx.Holder) error { return nil })
}

func (p *priceApp) run() error { return p.plain.Run(context.Background(), priceBody) }

func (p *priceApp) call() error { return p.body(context.Background()) }

func (p *priceApp) runPerRun() error {
	return p.rich.Run(context.Background(), func(priceIn) error { return nil })
}

// digByHand is the least that gives a run a scope of its own: what [fxlock.Lock.Run]
// is measured by.
func (p *priceApp) digByHand() error {
	root := dig.New(dig.DeferAcyclicVerification())
	if err := root.Provide(func() *priceDB { return p.db }); err != nil {
		return err
	}
	child := root.Scope("run")
	if err := child.Provide(func() lockfx.Token { return 1 }); err != nil {
		return err
	}
	return child.Invoke(priceBody)
}
