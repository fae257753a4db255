// Command fxapp is a service of three replicas that want to write the same nightly
// report. Without flags it tells a story of a few seconds: one replica wins the
// lock; one is paused past its lease, and its late write is refused; all stop in
// order. With -serve it is one replica with an HTTP server. With -store dir:PATH it is
// one replica that competes with other processes over that directory. With -lead it
// tells of three processes that campaign: one leads, is killed, and another takes over.
//
// It exits with 0 when the story was told or the replica was stopped by a signal,
// 1 on a fault, 2 on wrong flags, and 130 when a signal cut the story short. In
// every case the lease is released first. A second signal ends it at once.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, forget := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, forget) // the next signal is fatal again
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
