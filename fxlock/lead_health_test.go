package fxlock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/fx"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

// A function that runs on after its lease was lost shows at once, for as long as it runs.
func TestCheck_ReportsAFunctionThatOutlivesItsLease(t *testing.T) {
	for name, tt := range map[string]struct {
		lose  func(t *testing.T, store *farStore)
		after time.Duration
		want  string
	}{
		"broken":  {func(t *testing.T, s *farStore) { _, err := s.Break(t.Context(), key); must(t, err) }, oneBeat, "heartbeat failed"},
		"outage":  {func(_ *testing.T, s *farStore) { s.away.Store(true) }, oneBeat, "store error"},
		"MaxHold": {func(*testing.T, *farStore) {}, time.Minute, "max hold"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				store, release := newFarStore(), make(chan struct{})
				c := campaigns(t, store, func() { <-release }, fxlock.MaxHold(time.Minute))
				tt.lose(t, store)
				pass(tt.after)
				leads(t, false, c)
				for range 10 {
					pass(time.Minute)
					err := c.Check(t.Context())
					wantIs(t, err, lockfx.ErrLost)
					wantText(t, err, `lead "nightly": the term of token`, "was lost ("+tt.want+") and its function still runs")
				}
				store.away.Store(false)
				close(release)
				pass(time.Minute)
				noError(t, c.Check(t.Context()))
			})
		})
	}
}

// A subscriber that does not return holds up neither fn, nor the campaign, nor others,
// and it shows.
func TestSubscribe_BlockedSubscriberDelaysNothing(t *testing.T) {
	for _, change := range []fxlock.LeadershipChange{fxlock.LeadershipStandingBy, fxlock.LeadershipElected, fxlock.LeadershipEnded} {
		t.Run(change.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				var began moments
				release := make(chan struct{})
				c := newCandidate(fxlock.NewMemoryStore(), began.note)
				c.Subscribe(func(e fxlock.LeadershipEvent) {
					if e.Change == change {
						<-release
					}
				})
				c.start(t)
				pass(time.Minute)
				if n := began.count(); n < 50 {
					t.Errorf("%d terms in a minute", n)
				}
				if n := len(c.journal.all()); n < 150 {
					t.Errorf("another subscriber heard %d changes", n)
				}
				wantText(t, c.Check(t.Context()), `lead "nightly": the subscriber of lead_health_test.go:`, "has not returned for")
				close(release)
				synctest.Wait()
				noError(t, c.Check(t.Context()))
			})
		})
	}
}

// A stop does not wait for a subscriber for longer than it may take, and names it.
func TestSubscribe_BlockedSubscriberDoesNotDelayTheStop(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		release := make(chan struct{})
		c := newCandidate(fxlock.NewMemoryStore(), untilToldTo)
		c.Subscribe(func(e fxlock.LeadershipEvent) {
			if e.Change == fxlock.LeadershipStoodDown {
				<-release
			}
		})
		must(t, c.app.Start(t.Context()))
		synctest.Wait()
		begun := time.Now()
		wantText(t, c.app.Stop(t.Context()), `lead "nightly": the subscriber of lead_health_test.go:`, "has not returned for 5s")
		if took := time.Since(begun); took > 5*time.Second+time.Millisecond {
			t.Errorf("the stop took %v", took)
		}
		close(release)
	})
}

// A stop lets subscribers finish.
func TestSubscribe_AStopWaitsForSubscribers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var j journal
		c := newCandidate(fxlock.NewMemoryStore(), untilToldTo)
		c.Subscribe(func(e fxlock.LeadershipEvent) {
			time.Sleep(time.Second)
			j.add("%v", e.Change)
		})
		must(t, c.app.Start(t.Context()))
		synctest.Wait()
		must(t, c.app.Stop(t.Context()))
		j.expect(t, "standing by", "elected", "term ended", "stood down")
	})
}

// What the probes say in each situation.
func TestProbes(t *testing.T) {
	const good = ""
	for name, tt := range map[string]struct {
		fn                 any
		opts               []any
		then               func(*testing.T, *candidate, *farStore)
		check, live, ready string
	}{
		"leads": {fn: untilToldTo},
		"stands by": {
			then: func(t *testing.T, c *candidate, s *farStore) {
				another := newCandidate(s.MemoryStore, untilToldTo)
				another.start(t)
				must(t, c.StepDown(t.Context()))
				pass(time.Minute)
				leads(t, false, c)
			},
		},
		"stands by, and the store is down": {
			then: func(t *testing.T, c *candidate, s *farStore) {
				another := newCandidate(s.MemoryStore, untilToldTo)
				another.start(t)
				must(t, c.StepDown(t.Context()))
				s.away.Store(true)
				pass(time.Minute)
			},
			check: "no way through",
		},
		"the lease is lost, and the store is down": {
			then:  func(_ *testing.T, _ *candidate, s *farStore) { s.away.Store(true); pass(time.Minute) },
			check: "no way through",
		},
		"leads, and the store is down": {
			opts:  []any{fxlock.WithRenewRetry()},
			then:  func(_ *testing.T, _ *candidate, s *farStore) { s.away.Store(true); pass(oneBeat) },
			check: "no way through",
		},
		"the term failed":       {fn: func() error { return errBody }, check: "body-fault"},
		"the only term is over": {fn: func() {}, opts: []any{fxlock.OneTerm()}},
		"the lock was disposed of": {
			then:  func(t *testing.T, c *candidate, _ *farStore) { must(t, c.lock.Dispose(t.Context())); synctest.Wait() },
			check: "the campaign is over", ready: "the campaign is over",
		},
		"fn outlives its lease": {
			fn:    func(ctx context.Context) { <-ctx.Done(); time.Sleep(time.Hour) },
			opts:  []any{fxlock.MaxHold(time.Minute)},
			then:  func(*testing.T, *candidate, *farStore) { pass(2 * time.Minute) },
			check: "was lost (max hold) and its function still runs", live: "was lost (max hold) and its function still runs",
		},
		"a hook of the scope does not return": {
			fn: func(*Writer) {},
			opts: []any{fxlock.PerRun(func(lc fx.Lifecycle) *Writer {
				lc.Append(fx.StartHook(func() { time.Sleep(time.Hour) }))
				return new(Writer)
			})},
			then:  func(*testing.T, *candidate, *farStore) { pass(time.Minute) },
			check: "its function has not begun", live: "and for 1m0s now its function has not begun",
		},
		"a subscriber does not return": {
			then: func(_ *testing.T, c *candidate, _ *farStore) {
				c.Subscribe(func(fxlock.LeadershipEvent) { time.Sleep(time.Hour) })
				pass(time.Minute)
			},
			check: "has not returned for 1m0s", live: "has not returned for 1m0s",
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				store := newFarStore()
				if tt.fn == nil {
					tt.fn = untilToldTo
				}
				c := newCandidate(store, tt.fn, tt.opts...)
				must(t, c.app.Start(t.Context()))
				synctest.Wait()
				if tt.then != nil {
					tt.then(t, c, store)
				}
				for what, of := range map[string]struct {
					got  error
					want string
				}{
					"Check": {c.Check(t.Context()), tt.check},
					"Live":  {c.Live(t.Context()), tt.live},
					"Ready": {c.Ready(t.Context()), tt.ready},
				} {
					if of.want != good {
						wantText(t, of.got, of.want)
					} else if of.got != nil {
						t.Errorf("%s: %v", what, of.got)
					}
				}
				store.away.Store(false)
				_ = c.app.Stop(context.Background())
				time.Sleep(24 * time.Hour) // all of that ends
			})
		})
	}
}

// Before the start and after the stop no requests are due, and no restart is the remedy.
func TestProbes_BeforeTheStartAndAfterTheStop(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newCandidate(fxlock.NewMemoryStore(), func(ctx context.Context) {
			<-ctx.Done()
			time.Sleep(time.Minute)
		})
		want := func(text string) {
			t.Helper()
			wantText(t, c.Ready(t.Context()), `lead "nightly": `+text)
			noError(t, c.Live(t.Context()))
		}
		want("the campaign has not begun")
		wantText(t, c.Check(t.Context()), "the campaign has not begun")
		must(t, c.StepDown(t.Context()))
		must(t, c.app.Start(t.Context()))
		synctest.Wait()
		noError(t, c.Ready(t.Context()))
		stopped := make(chan error)
		go func() { stopped <- c.app.Stop(t.Context()) }()
		synctest.Wait()
		want("the campaign is ending")
		must(t, <-stopped)
		want("the campaign is over")
	})
}

// A term whose scope does not come to its end is over, and Live says why there is no next one.
func TestLive_SaysThatAHookDoesNotReturn(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		end := make(chan struct{})
		c := campaigns(t, fxlock.NewMemoryStore(), func(*Writer) {}, fxlock.WithTeardownTimeout(time.Second),
			fxlock.PerRun(func(lc fx.Lifecycle) *Writer {
				lc.Append(fx.StopHook(func() { <-end }))
				return new(Writer)
			}))
		pass(2 * time.Second)
		leads(t, false, c)
		wantText(t, c.Live(t.Context()), `lead "nightly": a term has ended, and its scope has not been torn down: a hook does not return`)
		pass(time.Hour)
		wantText(t, c.Live(t.Context()), "a hook does not return")
		close(end)
		synctest.Wait()
		noError(t, c.Live(t.Context()))
	})
}
