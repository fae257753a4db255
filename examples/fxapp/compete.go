package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/lockfx/lockfx"
)

const (
	competeTTL  = 3 * time.Second // how long a process that dies blocks the others
	competeRest = time.Second     // between two attempts
)

// processName tells the processes that share a store apart.
func processName() string { return fmt.Sprintf("replica-%d", os.Getpid()) }

// compete is one replica among processes that share a store. Until ctx ends it writes
// the report as often as it gets the lease.
func compete(ctx context.Context, w world, name string, pace time.Duration) error {
	w.ttl = competeTTL
	a := newActor(name, w, pace)
	if err := start(ctx, a.app); err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	w.out.say(name, "competes for %s", w.reportFile)
	fault := a.competeUntil(ctx)
	return join(fault, a.stop(w.out), w.tellLease())
}

func (a *actor) competeUntil(ctx context.Context) error {
	for ctx.Err() == nil {
		_, err := a.report(ctx)
		switch {
		case err == nil, ctx.Err() != nil, errors.Is(err, lockfx.ErrNotAcquired):
		case errors.Is(err, lockfx.ErrLost), errors.Is(err, lockfx.ErrStaleToken):
			// Paused for longer than the lease: the observer has told it.
		default:
			return fmt.Errorf("%s: %w", a.name, err)
		}
		sleep(ctx, competeRest)
	}
	return nil
}
