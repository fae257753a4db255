package fxlock_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/fx"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

// The stop cancels fn, renews the lease until fn has returned, and releases. The
// successor leads at that very moment.
func TestCase_S01_AStopHandsTheLeadOver(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var j journal
		store := newSpyStore(&j)
		first := newCandidate(store, func(ctx context.Context, h lockfx.Holder) error {
			<-ctx.Done()
			wantIs(t, context.Cause(ctx), lockfx.ErrDisposed)
			time.Sleep(10 * ttl)
			if !h.Held() || !store.valid(h.Token()) {
				t.Error("the lease was not renewed while the term ended")
			}
			j.add("fn ends")
			return nil
		})
		must(t, first.app.Start(t.Context()))
		synctest.Wait()
		second := campaigns(t, store, untilToldTo)
		pass(time.Minute + 7*time.Second) // somewhere between two heartbeats
		begun := time.Now()
		must(t, first.app.Stop(t.Context()))
		leads(t, false, first)
		leads(t, true, second)
		if took := time.Since(begun); took != 10*ttl {
			t.Errorf("the hand-off took %v more than fn", took-10*ttl)
		}
		j.expect(t, "acquire", "fn ends", "release", "acquire")
		first.journal.expect(t, "standing by", "elected", "term ended", "stood down")
		wantText(t, first.Check(t.Context()), `lead "nightly": the campaign is over`)
	})
}

// Without a Watcher the successor looks every second at least: a hand-off is no ttl.
func TestLead_StopHandsOverToAPoller(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := newSpyStore(new(journal))
		polled := struct{ lockfx.Store }{store}
		first := newCandidate(polled, untilToldTo)
		must(t, first.app.Start(t.Context()))
		synctest.Wait() // it leads
		second := campaigns(t, polled, untilToldTo)
		pass(time.Minute)
		must(t, first.app.Stop(t.Context()))
		pass(1250 * time.Millisecond)
		leads(t, true, second)
	})
}

// A store that closes in its own OnStop is closed after the leader has released.
func TestCase_S02_TheClientIsClosedAfterTheLeaderHasReleased(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var j journal
		var l *fxlock.Leadership
		app := fx.New(fx.NopLogger, fx.Populate(&l),
			fxlock.Module(key, fxlock.StoreFromGraph(), fxlock.Lead(func(ctx context.Context, _ *DB) error {
				defer j.add("fn ends")
				return untilToldTo(ctx)
			})),
			fx.Provide(func(lc fx.Lifecycle) lockfx.Store {
				lc.Append(fx.StopHook(func() { j.add("store closes") }))
				return newSpyStore(&j)
			}, func(lc fx.Lifecycle) *DB { // built after the store, for fn alone
				lc.Append(fx.StopHook(func() { j.add("db closes") }))
				return newDB()
			}))
		must(t, app.Start(t.Context()))
		synctest.Wait()
		must(t, app.Stop(t.Context()))
		j.expect(t, "acquire", "fn ends", "release", "db closes", "store closes")
	})
}

// A leader that can't give its lease back does not keep another one of the same
// application from it.
func TestCase_S03_OneLeadersFailureDoesNotSkipTheOthers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		far, near := newFarStore(), fxlock.NewMemoryStore()
		app := fx.New(fx.NopLogger,
			fxlock.Module("a", fxlock.Named(), fxlock.WithStore(near), fxlock.Lead(untilToldTo)),
			fxlock.Module("b", fxlock.Named(), fxlock.WithStore(far), fxlock.Lead(untilToldTo)),
			fxlock.Module("c", fxlock.Named(), fxlock.WithStore(near), fxlock.Lead(untilToldTo)))
		must(t, app.Start(t.Context()))
		synctest.Wait()
		far.away.Store(true)
		noError(t, app.Stop(t.Context()))
		for _, k := range []string{"a", "c"} {
			if lease, err := near.Inspect(t.Context(), k); lease.Token != 0 || err != nil {
				t.Errorf("%s is still held: %+v, %v", k, lease, err)
			}
		}
	})
}

// The stop ends the waiting at once: nobody is left in the way of others.
func TestLead_StopWhileStandingBy(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := newSpyStore(new(journal))
		first := newCandidate(store, untilToldTo)
		must(t, first.app.Start(t.Context()))
		synctest.Wait()
		second, third := newCandidate(store, untilToldTo), campaigns(t, store, untilToldTo)
		must(t, second.app.Start(t.Context()))
		pass(time.Minute)
		begun := time.Now()
		must(t, second.app.Stop(t.Context()))
		if took := time.Since(begun); took != 0 {
			t.Errorf("the stop took %v", took)
		}
		second.journal.expect(t, "standing by", "stood down")
		must(t, first.app.Stop(t.Context()))
		leads(t, true, third)
	})
}

// A stop between two terms does not wait for the next one.
func TestLead_StopDuringAPause(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newCandidate(fxlock.NewMemoryStore(), func() {}, fxlock.TermPause(time.Hour))
		must(t, c.app.Start(t.Context()))
		pass(time.Minute)
		begun := time.Now()
		must(t, c.app.Stop(t.Context()))
		if took := time.Since(begun); took != 0 {
			t.Errorf("the stop took %v", took)
		}
		c.journal.expect(t, "standing by", "elected", "term ended", "stood down")
	})
}

// deafFn works on until it is let go.
func deafFn(release <-chan struct{}) func(lockfx.Holder) error {
	return func(lockfx.Holder) error {
		<-release
		return errBody
	}
}

// fx has no time left for the lock's hook when fn does not heed the stop. The lease
// is never released under fn, and not renewed any more either: others lead after it.
// The next start waits until fn has returned.
func TestCase_S05_AStopThatRunsOutOfTime(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var j journal
		store, release := newSpyStore(&j), make(chan struct{})
		deaf := newCandidate(store, deafFn(release))
		must(t, deaf.app.Start(t.Context()))
		synctest.Wait() // it leads
		other := campaigns(t, store, untilToldTo)
		pass(time.Minute)

		stop, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantIs(t, deaf.app.Stop(stop), context.DeadlineExceeded)
		synctest.Wait()
		wantText(t, deaf.hooks.err, `dispose "nightly": the body still runs under token`, "its lease is left to expire", "deadline exceeded")
		leads(t, true, deaf) // of a lease that is still good
		pass(ttl)
		leads(t, false, deaf)
		leads(t, true, other)
		j.expect(t, "acquire", "acquire") // nothing was released under fn

		deaf.start(t)
		wantText(t, deaf.Check(t.Context()), `lead "nightly": a term of an earlier start still runs`)
		must(t, other.app.Stop(t.Context()))
		pass(time.Hour)
		leads(t, false, deaf)
		lost := `lost: hold "nightly": lease lost: disposed (token 946684800000000)`
		deaf.journal.expect(t, "standing by", "elected", lost)

		close(release)
		pass(0)
		deaf.journal.expect(t, "standing by", "elected", lost,
			"term ended: body-fault\n"+`hold "nightly": lease lost: disposed (token 946684800000000)`, "stood down",
			"standing by", "elected", "term ended: body-fault")
		wantIs(t, deaf.Check(t.Context()), errBody) // of the new term
	})
}

// A start that had to wait for an earlier term is in good order afterwards, even before
// it has asked the store anything.
func TestCheck_ForgetsTheTroubleOfAnEarlierTerm(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		release := make(chan struct{})
		var no atomic.Bool
		c := newCandidate(fxlock.NewMemoryStore(), deafFn(release), fxlock.If(func() bool { return !no.Load() }))
		must(t, c.app.Start(t.Context()))
		synctest.Wait()
		stop, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantIs(t, c.app.Stop(stop), context.DeadlineExceeded)
		synctest.Wait()
		no.Store(true)
		c.start(t)
		wantText(t, c.Check(t.Context()), "a term of an earlier start still runs")
		close(release)
		synctest.Wait()
		noError(t, c.Check(t.Context()))
	})
}

// When a start fails because its time is over, fx stops nothing: see [fxlock.Lead].
// But the next start puts an end to the campaign.
func TestCase_S04_AStartThatRunsOutOfTimeAfterTheCampaignBegan(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		slow := true
		c := newCandidate(fxlock.NewMemoryStore(), untilToldTo, fx.Invoke(func(lc fx.Lifecycle, _ *fxlock.Leadership) {
			lc.Append(fx.StartHook(func(ctx context.Context) error {
				if slow {
					<-ctx.Done()
				}
				return ctx.Err()
			}))
		}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantIs(t, c.app.Start(ctx), context.DeadlineExceeded)
		leads(t, true, c)
		slow = false
		c.start(t)
		leads(t, true, c)
		c.journal.expect(t, "standing by", "elected", "term ended", "stood down", "standing by", "elected")
	})
}

// A start that fails for another reason ends the campaign that had begun.
func TestCase_S04_AFailedStartEndsTheCampaign(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := newSpyStore(new(journal))
		c := newCandidate(store, untilToldTo, fx.Invoke(func(lc fx.Lifecycle, _ *fxlock.Leadership) {
			lc.Append(fx.StartHook(func() error { return errStart }))
		}))
		wantIs(t, c.app.Start(t.Context()), errStart)
		if !store.free() {
			t.Error("the key is held after a failed start")
		}
		wantText(t, c.Check(t.Context()), "the campaign is over")
	})
}

// An application can be started again and again; its tokens go on rising.
func TestLead_EachStartHasACampaign(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newCandidate(fxlock.NewMemoryStore(), untilToldTo)
		wantText(t, c.Check(t.Context()), `lead "nightly": the campaign has not begun`)
		var last lockfx.Token
		for range 3 {
			must(t, c.app.Start(t.Context()))
			leads(t, true, c)
			noError(t, c.Check(t.Context()))
			if c.Token() <= last {
				t.Errorf("token %v after %v", c.Token(), last)
			}
			last = c.Token()
			must(t, c.app.Stop(t.Context()))
			leads(t, false, c)
		}
	})
}

// Trouble of an earlier start is none of the next one.
func TestCheck_AStartForgetsEarlierTrouble(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := newFarStore()
		holder := newLock(t, store)
		if ok, err := holder.Acquire(t.Context()); !ok || err != nil {
			t.Fatal(ok, err)
		}
		var no atomic.Bool
		c := newCandidate(store, func() { t.Error("it led") }, fxlock.If(func() bool { return !no.Load() }))
		store.away.Store(true)
		must(t, c.app.Start(t.Context()))
		synctest.Wait()
		wantIs(t, c.Check(t.Context()), errAway)
		must(t, c.app.Stop(t.Context()))
		no.Store(true) // it will not even ask
		c.start(t)
		noError(t, c.Check(t.Context()))
		store.away.Store(false)
	})
}

// Whoever disposes of the lock by hand ends the campaign, also between two terms.
func TestDispose_EndsTheCampaign(t *testing.T) {
	for name, fn := range map[string]any{"leading": untilToldTo, "pausing": func() {}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				store := newSpyStore(new(journal))
				c := campaigns(t, store, fn, fxlock.TermPause(time.Hour))
				must(t, c.lock.Dispose(t.Context()))
				synctest.Wait()
				leads(t, false, c)
				if all := c.journal.all(); all[len(all)-1] != "stood down" || !store.free() {
					t.Errorf("what happened: %q, free %v", all, store.free())
				}
				wantText(t, c.Check(t.Context()), "the campaign is over")
			})
		})
	}
}

// A disposal by hand is no fault of the term, however quickly fn hears of it.
func TestDispose_IsNoFaultOfATerm(t *testing.T) {
	for range 50 {
		inBubble(t, func(t *testing.T) {
			c := campaigns(t, fxlock.NewMemoryStore(), untilToldTo)
			must(t, c.lock.Dispose(t.Context()))
			synctest.Wait()
			c.journal.expect(t, "standing by", "elected", "term ended", "stood down")
		})
	}
}

// Nobody else hears of what a term ended with. What fn says at the stop is told too,
// if it is more than that it was told to stop.
func TestLead_LogsErrorsOfTerms(t *testing.T) {
	for name, tt := range map[string]struct {
		fn   any
		opt  any
		want string
	}{
		"good":        {func(ctx context.Context) { <-ctx.Done() }, nil, ""},
		"cancelled":   {func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, nil, ""},
		"told why":    {untilToldTo, nil, ""},
		"fails after": {func(ctx context.Context) error { <-ctx.Done(); return errBody }, nil, "term failed led_for: body-fault"},
		"fails":       {func() error { return errBody }, nil, "term failed led_for standing_by_in: body-fault"},
		"fails to tear down": {
			func(*Writer) {}, fxlock.PerRun(func(lc fx.Lifecycle) *Writer {
				lc.Append(fx.StopHook(func() error { return errCleanup }))
				return new(Writer)
			}),
			`cleanup of a term failed led_for standing_by_in: run "nightly": tear the scope down: OnStop hook: cleanup-fault`,
		},
		"no term": {
			func() {}, fxlock.If(func() (bool, error) { return false, errBody }),
			`campaign failed standing_by_in: run "nightly": evaluate the condition: body-fault`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				core, logs := observer.New(zapcore.WarnLevel)
				c := newCandidate(fxlock.NewMemoryStore(), tt.fn, fxlock.WithLogger(zap.New(core)), tt.opt)
				must(t, c.app.Start(t.Context()))
				pass(time.Millisecond)
				must(t, c.app.Stop(t.Context()))
				got := ""
				for _, line := range logs.All() {
					fields := line.ContextMap()
					got += line.Message
					for _, name := range []string{"led_for", "standing_by_in"} {
						if _, ok := fields[name]; ok {
							got += " " + name
						}
					}
					got += fmt.Sprintf(": %v", fields["error"])
					if fields["lock"] != key || fields["key"] != key || line.LoggerName != "fxlock" {
						t.Errorf("the line is %+v", line)
					}
				}
				if got != tt.want {
					t.Errorf("logged %q, want %q", got, tt.want)
				}
				changes := []string{"standing by", "elected", "term ended", "stood down"}
				switch {
				case strings.HasPrefix(tt.want, "term failed"):
					changes[2] += ": " + errBody.Error()
				case strings.HasPrefix(tt.want, "campaign failed"):
					changes = []string{"standing by", "stood down"}
				}
				c.journal.expect(t, changes...)
			})
		})
	}
}
