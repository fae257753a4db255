package main

import (
	"context"
	"time"

	"go.uber.org/fx"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/examples/fxapp/nightly"
	"github.com/lockfx/lockfx/examples/fxapp/web"
)

// serveTTL is how long a replica that dies blocks the others.
const serveTTL = 10 * time.Second

// serve is one replica with an HTTP server, until ctx ends or the server fails.
func serve(ctx context.Context, w world, opts options) error {
	name := "replica-1"
	if opts.store.shared() {
		name = processName()
	}
	w.ttl = serveTTL
	var server *web.Server
	app := fx.New(
		w.replica(name, lockfx.SystemClock()),
		fx.Supply(web.Config{Address: opts.serve, Lock: lockName, ReportFile: w.reportFile}),
		web.Module,
		fx.Decorate(func(log nightly.Log) nightly.Log { return slowly(log, opts.pace) }),
		fx.Populate(&server),
	)
	if err := start(ctx, app); err != nil {
		return err
	}
	w.out.say(name, "listens on http://%s", server.Addr())
	w.out.say(name, "writes to %s", w.reportFile)
	var fault error
	select {
	case <-ctx.Done():
	case fault = <-server.Failed():
	}
	w.out.say(name, "stops")
	return join(fault, stop(app), w.tellLease())
}
