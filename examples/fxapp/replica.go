package main

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/fx"
	"go.uber.org/fx/fxevent"
	"go.uber.org/zap"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/examples/fxapp/nightly"
	"github.com/lockfx/lockfx/examples/fxapp/report"
	"github.com/lockfx/lockfx/fxlock"
)

const (
	lockName    = "nightly"
	stopTimeout = 2 * time.Second // of one replica
)

// world is what all replicas have in common.
type world struct {
	store      lockfx.Store
	ttl        time.Duration
	log        nightly.Log
	reportFile string
	logger     *zap.Logger
	out        *console
}

// basis returns what every replica needs beside its lock.
func (w world) basis(name string) fx.Option {
	return fx.Options(
		fx.StopTimeout(stopTimeout),
		fx.WithLogger(func(logger *zap.Logger) fxevent.Logger { return &fxevent.ZapLogger{Logger: logger} }),
		fx.Supply(w.logger.Named(name)),
		fx.Provide(
			func() lockfx.Store { return w.store },
			func() (nightly.Sink, error) { return report.OpenSink(w.reportFile) },
		),
	)
}

// replica returns the options of one replica: the report, its lock, and what they
// need.
func (w world) replica(name string, clock lockfx.Clock) fx.Option {
	return fx.Options(
		w.basis(name),
		fx.Supply(w.log, w.out.progress(name)),
		fxlock.Module(
			lockName,
			fxlock.StoreFromGraph(),
			fxlock.WithTTL(w.ttl),
			fxlock.WithLabel(name),
			fxlock.WithClock(clock),
			fxlock.Observer(w.out.observe(name)),
			fxlock.PerRun(nightly.OpenInput, nightly.NewOutput),
			fxlock.Body[nightly.Report](nightly.Write),
		),
	)
}

func start(ctx context.Context, app *fx.App) error {
	ctx, cancel := context.WithTimeout(ctx, app.StartTimeout())
	defer cancel()
	return app.Start(ctx)
}

// stop stops app, however late it is.
func stop(app *fx.App) error {
	ctx, cancel := context.WithTimeout(context.Background(), app.StopTimeout())
	defer cancel()
	return app.Stop(ctx)
}

// tellLease says what the store knows of the lease in the end.
func (w world) tellLease() error {
	inspector, ok := w.store.(lockfx.Inspector)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	lease, err := inspector.Inspect(ctx, lockName)
	switch {
	case err != nil:
		return fmt.Errorf("look at the lease: %w", err)
	case lease.Token.Valid():
		w.out.say("the store", "says that %s still holds the lease, with token %d", lease.Label, lease.Token)
	default:
		w.out.say("the store", "says that the lease is free")
	}
	return nil
}
