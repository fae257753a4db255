package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/examples/fxapp/report"
)

// storyTTL is short, so that the end of a lease can be watched.
const storyTTL = 1500 * time.Millisecond

// story is told by three replicas that share a store and want the same report.
type story struct {
	world
	pace    time.Duration
	running []*actor
}

// tellStory tells the story. When ctx ends it stops all replicas at once and, if
// all went well, returns errInterrupted.
func tellStory(ctx context.Context, w world, pace time.Duration) error {
	s := &story{world: w, pace: pace}
	s.ttl = storyTTL
	s.out.title("Three replicas, one lock, one report: " + s.reportFile)
	err := s.tell(ctx)
	switch {
	case ctx.Err() != nil:
		s.out.title("Interrupted: everything stops")
		err = errInterrupted
	case err != nil:
		s.out.title("A fault: everything stops")
	default:
		s.out.title("4. The others stop")
	}
	return join(err, s.stopAll(), s.tellLease())
}

// join is errors.Join that returns a lone error as it is.
func join(errs ...error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

func (s *story) tell(ctx context.Context) error {
	for _, name := range []string{"replica-1", "replica-2", "replica-3"} {
		a := newActor(name, s.world, s.pace)
		if err := start(ctx, a.app); err != nil {
			return fmt.Errorf("start %s: %w", name, err)
		}
		s.running = append(s.running, a)
	}
	for _, act := range []func(context.Context) error{s.race, s.takeover, s.leave} {
		if err := act(ctx); err != nil {
			return err
		}
	}
	return nil
}

// race lets all replicas want the report at the same moment.
func (s *story) race(ctx context.Context) error {
	s.out.title("1. All want to write the report. A lease lasts " + s.ttl.String() + ", and heartbeats renew it")
	errs := make([]error, len(s.running))
	var all sync.WaitGroup
	for i, a := range s.running {
		all.Go(func() { errs[i] = s.report(ctx, a) })
	}
	all.Wait()
	winners := 0
	for i, err := range errs {
		switch {
		case err == nil:
			winners++
		case !errors.Is(err, lockfx.ErrNotAcquired):
			return fmt.Errorf("%s: %w", s.running[i].name, err)
		}
	}
	if winners == 0 {
		return errors.New("nobody wrote the report")
	}
	return nil
}

// report makes a write the report, and tells what is in it.
func (s *story) report(ctx context.Context, a *actor) error {
	summary, err := a.report(ctx)
	if err != nil {
		return err
	}
	stats := summary.Stats
	s.out.say(a.name, "is done: %d requests; %d of %d lines are malformed", summary.Requests(), stats.Malformed, stats.Lines)
	for _, m := range stats.Samples[:min(1, len(stats.Samples))] {
		s.out.say(a.name, "the first of these is line %d: %s", m.Line, m.Reason)
	}
	return nil
}

// stopAll stops what still runs, in reverse order.
func (s *story) stopAll() error {
	var errs []error
	for _, a := range slices.Backward(s.running) {
		errs = append(errs, a.stop(s.out))
	}
	return errors.Join(errs...)
}

// mark returns the fencing token of the report that is on disk.
func (s *story) mark() (lockfx.Token, error) {
	sink, err := report.OpenSink(s.reportFile)
	if err != nil {
		return 0, err
	}
	return sink.Mark(), nil
}
