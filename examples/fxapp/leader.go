package main

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/fx"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/examples/fxapp/nightly"
	"github.com/lockfx/lockfx/fxlock"
)

const (
	leadTTL  = 2 * time.Second        // how long a leader that dies blocks its successor
	leadBeat = 250 * time.Millisecond // from one write of the leader to the next
)

// candidate returns the options of a replica that campaigns, and while it leads keeps
// the report up to date.
func (w world) candidate(name string) fx.Option {
	return fx.Options(
		w.basis(name),
		fxlock.Module(
			lockName,
			fxlock.StoreFromGraph(),
			fxlock.WithTTL(leadTTL),
			fxlock.WithLabel(name),
			fxlock.Observer(func(e lockfx.Event) {
				if e.Kind == lockfx.EventRefused || e.Kind == lockfx.EventLost {
					w.out.observe(name)(e)
				}
			}),
			fxlock.Lead(func(ctx context.Context, fence lockfx.Token, sink nightly.Sink) error {
				return keepUpToDate(ctx, name, fence, sink)
			}),
		),
		fx.Invoke(func(l *fxlock.Leadership) { l.Subscribe(w.out.leadership(name)) }),
	)
}

// keepUpToDate is the work of the leader: it writes who leads, again and again, until
// its term ends. The sink refuses one whose successor has written.
func keepUpToDate(ctx context.Context, name string, fence lockfx.Token, sink nightly.Sink) error {
	for beat := 1; ctx.Err() == nil; beat++ {
		if err := sink.Write(ctx, fence, fmt.Appendf(nil, "%s leads with token %d: write %d\n", name, fence, beat)); err != nil {
			return err
		}
		sleep(ctx, leadBeat)
	}
	return context.Cause(ctx)
}

// campaign is one process among those that share a store: it campaigns until ctx ends.
func campaign(ctx context.Context, w world, name string) error {
	app := fx.New(w.candidate(name))
	// A start whose context ends would leave behind what it has begun, so it is not cut short.
	if err := start(context.WithoutCancel(ctx), app); err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	<-ctx.Done()
	return stop(app)
}

// leadership returns a subscriber that tells what becomes of the campaign of who.
func (c *console) leadership(who string) func(fxlock.LeadershipEvent) {
	return func(e fxlock.LeadershipEvent) {
		switch e.Change {
		case fxlock.StandingBy:
			c.say(who, "stands by")
		case fxlock.Elected:
			c.say(who, "%s %d", saysElected, e.Token)
		case fxlock.TermEnded:
			c.say(who, "has ended its term and released")
		case fxlock.StoodDown:
			c.say(who, "has stood down")
		}
	}
}

// saysElected is how a process tells that it leads, for people and for the story.
const saysElected = "LEADS, with fencing token"
