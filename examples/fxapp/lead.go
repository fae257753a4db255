package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/fx"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

const beat = 500 * time.Millisecond // from one write of the leader to the next

// newCandidate builds a replica that campaigns, and keeps the report up to date while it
// leads. elected gets its name with each term, if it is not nil.
func (w *world) newCandidate(name string, elected chan<- string) *replica {
	return w.newReplica(name, fxlock.Lead(keepUpToDate), fx.Invoke(func(l *fxlock.Leadership) {
		l.Subscribe(w.out.leads(name))
		l.Subscribe(func(e fxlock.LeadershipEvent) {
			if e.Change == fxlock.LeadershipElected && elected != nil {
				elected <- name
			}
		})
	}))
}

// keepUpToDate is the work of the leader, until its term ends. The sink refuses one whose
// successor has written.
func keepUpToDate(ctx context.Context, fence lockfx.Token, to sink) error {
	for n := 1; ; n++ {
		if err := to.Write(ctx, fence, fmt.Sprintf("write %d of the leader with token %d\n", n, fence)); err != nil {
			return err
		}
		if err := sleep(ctx, beat); err != nil {
			return err
		}
	}
}

// tellLeading tells of three replicas of which one leads: it is paused, and its successor
// is stopped.
func (w *world) tellLeading(ctx context.Context) (err error) {
	w.out.title("Three replicas, one leader. Its lease lasts %v", ttl)
	elected := make(chan string, 8)
	replicas := map[string]*replica{}
	for i := range 3 {
		r := w.newCandidate(fmt.Sprintf("replica-%d", i+1), elected)
		if err := r.start(ctx); err != nil {
			return err
		}
		replicas[r.name] = r
		defer func() { err = errors.Join(err, r.stop()) }()
	}
	leader, err := w.peace(ctx, elected)
	if err != nil {
		return err
	}

	w.out.title("1. The leader is paused. It can't give its lease back: it runs out, and another one leads")
	process := replicas[leader].process
	pause := process.pauseAtWrite()
	<-pause.begun
	w.out.say(leader, "IS PAUSED right before it writes")
	next, err := w.peace(ctx, elected)
	w.out.say(leader, "GOES ON, and writes")
	process.resume()
	if err == nil {
		err = sleep(ctx, ttl)
	}
	if err != nil {
		return err
	}

	w.out.title("2. Its successor is stopped: it gives the lease back, and the next one leads at once")
	begun := time.Now()
	if err := replicas[next].stop(); err != nil {
		return err
	}
	last, err := w.peace(ctx, elected)
	w.out.say(last, "leads, %v after that began", (time.Since(begun) - ttl).Round(10*time.Millisecond))
	w.out.title("3. The others stop")
	return err
}

// peace returns who is elected next, after a while in which it leads.
func (w *world) peace(ctx context.Context, elected <-chan string) (string, error) {
	select {
	case name := <-elected:
		return name, sleep(ctx, ttl)
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// campaign is one process among those that share a store, until ctx ends.
func (w *world) campaign(ctx context.Context) error {
	r := w.newCandidate(w.name, nil)
	if err := r.start(ctx); err != nil {
		return err
	}
	<-ctx.Done()
	return r.stop()
}
