package main

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/fx"
	"go.uber.org/fx/fxevent"
	"go.uber.org/zap"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

const (
	lockName    = "nightly"
	ttl         = 1500 * time.Millisecond // short, so that the end of a lease can be watched
	stopTimeout = 2 * time.Second
)

// world is what the replicas have in common.
type world struct {
	store  lockfx.Store
	sink   sink
	logger *zap.Logger
	out    *console
	name   string // of this process among others
}

// replica is one application.
type replica struct {
	name    string
	app     *fx.App
	process *process
	report  Report        // of a reporter
	page    chan struct{} // a page is done
}

// newReplica builds an application with a lock, the work under it, and what opts add.
func (w *world) newReplica(name string, work fxlock.Option, opts ...fx.Option) *replica {
	r := &replica{name: name, process: &process{}, page: make(chan struct{}, pages)}
	r.app = fx.New(
		fx.StopTimeout(stopTimeout),
		fx.WithLogger(func(logger *zap.Logger) fxevent.Logger { return &fxevent.ZapLogger{Logger: logger} }),
		fx.Supply(w.logger.Named(name)),
		fx.Provide(
			func() lockfx.Store { return w.store },
			func() sink { return pausable{telling{w.sink, name, w.out}, r.process} },
			func() progress { return r.progress(w.out) },
		),
		fxlock.Module(
			lockName,
			fxlock.StoreFromGraph(),
			fxlock.WithTTL(ttl),
			fxlock.WithLabel(name),
			fxlock.WithClock(r.process),
			fxlock.Observer(w.out.observe(name)),
			fxlock.PerRun(NewWriter),
			work,
		),
		fx.Options(opts...),
	)
	return r
}

// newReporter builds a replica that writes the report when it is asked to.
func (w *world) newReporter(name string, opts ...fx.Option) *replica {
	var report Report
	r := w.newReplica(name, fxlock.Body[Report](writeReport), append(opts, fx.Populate(&report))...)
	r.report = report
	return r
}

func (r *replica) progress(out *console) progress {
	return func(page int) {
		out.say(r.name, "has page %d of %d", page, pages)
		select {
		case r.page <- struct{}{}:
		default:
		}
	}
}

// start starts the application. It is not cut short by a signal: fx would leave behind
// what has begun.
func (r *replica) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.app.StartTimeout())
	defer cancel()
	if err := r.app.Start(ctx); err != nil {
		return fmt.Errorf("start %s: %w", r.name, err)
	}
	return nil
}

// stop ends what runs, releases the lease, and stops the application.
func (r *replica) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), r.app.StopTimeout())
	defer cancel()
	if err := r.app.Stop(ctx); err != nil {
		return fmt.Errorf("stop %s: %w", r.name, err)
	}
	return nil
}
