package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lockfx/lockfx"
)

// tellStory tells of three replicas that want the same report. All are stopped in the end,
// the last one first.
func (w *world) tellStory(ctx context.Context) (err error) {
	w.out.title("Three replicas, one lock, one report. A lease lasts %v, and heartbeats renew it", ttl)
	replicas := make([]*replica, 3)
	for i := range replicas {
		replicas[i] = w.newReporter(fmt.Sprintf("replica-%d", i+1))
		if err := replicas[i].start(ctx); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, replicas[i].stop()) }()
	}
	for _, chapter := range []func(context.Context, []*replica) error{w.race, w.takeover, w.leave} {
		if err := chapter(ctx, replicas); err != nil {
			return err
		}
	}
	w.out.title("4. The others stop")
	return nil
}

// race: all want to write at the same moment. One does; the others learn who it is.
func (w *world) race(ctx context.Context, replicas []*replica) error {
	w.out.title("1. All want to write the report")
	var all sync.WaitGroup
	errs := make([]error, len(replicas))
	for i, r := range replicas {
		all.Go(func() {
			if err := r.report(ctx); !errors.Is(err, lockfx.ErrNotAcquired) {
				errs[i] = err
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// takeover: a holder is paused past its lease, and another one writes. The first one goes
// on, knows nothing of it, and writes with its old token.
func (w *world) takeover(ctx context.Context, replicas []*replica) error {
	w.out.title("2. A holder is paused past its lease, as SIGSTOP or a suspended machine does it")
	paused, other := replicas[0], replicas[1]
	pause := paused.process.pauseAtWrite()
	late := make(chan error, 1)
	go func() { late <- paused.report(ctx) }()
	select {
	case <-pause.begun:
	case err := <-late:
		return fmt.Errorf("%s did not come to its write: %w", paused.name, err)
	}
	w.out.say(paused.name, "IS PAUSED right before it writes: no heartbeat, no timer, no code runs")
	err := insist(ctx, other)
	if err == nil {
		w.out.say(paused.name, "GOES ON. It knows nothing of all this, and writes")
	}
	paused.process.resume()
	if lateErr := <-late; err == nil && !errors.Is(lateErr, lockfx.ErrStaleToken) {
		err = fmt.Errorf("the late write was not refused as stale: %w", lateErr)
	}
	return err
}

// insist asks again each time that the lease in the way can have ended.
func insist(ctx context.Context, r *replica) error {
	for {
		err := r.report(ctx)
		var busy *lockfx.NotAcquiredError
		if !errors.As(err, &busy) {
			return err
		}
		if err := sleep(ctx, busy.RetryAfter+10*time.Millisecond); err != nil {
			return err
		}
	}
}

// leave: a replica is stopped in the middle of its report. The stop cancels the work, waits
// for it, and gives the lease back.
func (w *world) leave(ctx context.Context, replicas []*replica) error {
	w.out.title("3. A replica is stopped in the middle of its report")
	last := replicas[len(replicas)-1]
	for len(last.page) > 0 { // of an earlier report
		<-last.page
	}
	ended := make(chan error, 1)
	go func() { ended <- last.report(ctx) }()
	select {
	case <-last.page:
	case err := <-ended:
		return err
	}
	w.out.say(last.name, "IS TOLD TO STOP")
	err := last.stop()
	w.out.say(last.name, "had to end its report: %v", <-ended)
	return err
}

// compete is one replica among processes that share a store. Until ctx ends it writes the
// report as often as it gets the lease.
func (w *world) compete(ctx context.Context) error {
	r := w.newReporter(w.name)
	if err := r.start(ctx); err != nil {
		return err
	}
	for ctx.Err() == nil {
		if err := r.report(ctx); err != nil && !errors.Is(err, lockfx.ErrNotAcquired) {
			w.out.say(r.name, "did not finish: %v", err)
		}
		_ = sleep(ctx, time.Second)
	}
	return r.stop()
}
