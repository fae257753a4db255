package fxlock_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/fx"
	"go.uber.org/fx/fxevent"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

// candidate is an application that campaigns. What happens to it is in journal.
type candidate struct {
	*fxlock.Leadership
	lock    *fxlock.Lock
	app     *fx.App
	hooks   hookErrors // of hooks that failed
	journal journal
}

// newCandidate returns one that was not started.
func newCandidate(store lockfx.Store, fn any, opts ...any) *candidate {
	c := new(candidate)
	var lead []fxlock.LeadOption
	all := []fxlock.Option{fxlock.WithStore(store)}
	fxOpts := []fx.Option{
		fx.WithLogger(func() fxevent.Logger { return &c.hooks }),
		fx.Populate(&c.Leadership, &c.lock), fx.StopTimeout(time.Hour),
	}
	for _, o := range opts {
		switch o := o.(type) {
		case fxlock.LeadOption:
			lead = append(lead, o)
		case fxlock.Option:
			all = append(all, o)
		case fx.Option:
			fxOpts = append(fxOpts, o)
		}
	}
	c.app = fx.New(append(fxOpts, fxlock.Module(key, append(all, fxlock.Lead(fn, lead...))...))...)
	if c.app.Err() == nil {
		c.Subscribe(c.note)
	}
	return c
}

func (c *candidate) note(e fxlock.LeadershipEvent) {
	if e.Err != nil {
		c.journal.add("%v: %v", e.Change, e.Err)
		return
	}
	if e.Leader != "" {
		c.journal.add("%v: %v", e.Change, e.Leader)
		return
	}
	c.journal.add("%v", e.Change)
}

// start starts it, and stops it when the test ends.
func (c *candidate) start(t *testing.T) {
	t.Helper()
	must(t, c.app.Start(t.Context()))
	t.Cleanup(func() { noError(t, c.app.Stop(context.Background())) })
	synctest.Wait()
}

// campaigns is newCandidate and start.
func campaigns(t *testing.T, store lockfx.Store, fn any, opts ...any) *candidate {
	t.Helper()
	c := newCandidate(store, fn, opts...)
	c.start(t)
	return c
}

// untilToldTo is what most leaders do.
func untilToldTo(ctx context.Context) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// leads checks whether each of the candidates leads.
func leads(t *testing.T, want bool, candidates ...*candidate) {
	t.Helper()
	synctest.Wait()
	for i, c := range candidates {
		if c.IsLeader() != want || c.Token().Valid() != want {
			t.Errorf("candidate %d: leads %v with token %v, want %v", i, c.IsLeader(), c.Token(), want)
		}
	}
}

// pass lets time pass, and waits for what it brings about.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// moments is when something happened.
type moments struct {
	mu  sync.Mutex
	all []time.Time
}

func (m *moments) note() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = append(m.all, time.Now())
}

func (m *moments) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.all)
}

// between returns the times from one to the next, and forgets all of them.
func (m *moments) between() (gaps []time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := 1; i < len(m.all); i++ {
		gaps = append(gaps, m.all[i].Sub(m.all[i-1]))
	}
	m.all = nil
	return gaps
}
