package fxlock_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/fx"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

// A term is a run like any other: what fn asks for is bound, and the rest stand by.
func TestLead_OneLeadsAndTheOthersStandBy(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := newSpyStore(new(journal))
		fn := func(ctx context.Context, h lockfx.Holder, w *Writer, token lockfx.Token) error {
			if h.Token() != token || w.Token != token || w.DB.Name != "app" || lockfx.TokenFrom(ctx) != token {
				t.Errorf("bound: %v, %+v, %v", h.Token(), w, token)
			}
			return untilToldTo(ctx)
		}
		opts := []any{fx.Provide(newDB), fxlock.PerRun(newWriter)}
		first, second := campaigns(t, store, fn, opts...), campaigns(t, store, fn, opts...)
		pass(10 * ttl)
		leads(t, true, first)
		leads(t, false, second)
		first.journal.expect(t, "standing by", "elected")
		second.journal.expect(t, "standing by")
		if lease, err := second.Leader(t.Context()); err != nil || lease.Token != first.Token() {
			t.Errorf("the leader is %+v (%v), want %v", lease, err, first.Token())
		}
	})
}

// The lease is lost: fn is cancelled with the reason, the term ends, another leads,
// and the first one stands by again.
func TestLead_LossEndsTheTerm(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := newFarStore()
		c := campaigns(t, store, func(ctx context.Context) error {
			<-ctx.Done()
			return nil // the loss is told all the same
		})
		token := c.Token()
		store.away.Store(true)
		pass(oneBeat)
		leads(t, false, c)
		lost := fmt.Sprintf(`hold "nightly": lease lost: store error (token %v): not confirmed since 00:00:00 (10s): `+
			`renew "nightly": store failed: no way through`, token)
		c.journal.expect(t, "standing by", "elected", "lost: "+lost, "term ended: "+lost)
		wantIs(t, c.Check(t.Context()), lockfx.ErrLost, errAway)
		store.away.Store(false)
		pass(ttl) // of the lease that could not be given back
		leads(t, true, c)
		noError(t, c.Check(t.Context()))
		c.journal.expect(t, "standing by", "elected", "lost: "+lost, "term ended: "+lost, "standing by", "elected")
		if c.Token() <= token {
			t.Errorf("token %v after %v", c.Token(), token)
		}
	})
}

// After errors the pause is doubled from a second up to half a minute, a quarter more
// or less. A term that lasted resets it.
func TestLead_PauseGrowsAfterErrors(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var began moments
		var lasts atomic.Int64
		campaigns(t, fxlock.NewMemoryStore(), func() error {
			began.note()
			time.Sleep(time.Duration(lasts.Load()))
			return errBody
		})
		wantPauses := func(want ...time.Duration) {
			t.Helper()
			got := began.between()
			if len(got) < len(want) {
				t.Fatalf("pauses %v", got)
			}
			for i, w := range want {
				if got := got[i] - time.Duration(lasts.Load()); got < w*3/4 || got > w*5/4 {
					t.Errorf("pause %d is %v, want about %v", i, got, w)
				}
			}
		}
		pass(10 * time.Minute)
		wantPauses(time.Second, 2*time.Second, 4*time.Second, 8*time.Second, 16*time.Second, 30*time.Second, 30*time.Second)

		for lasting, pause := range map[time.Duration]time.Duration{ttl - 1: 30 * time.Second, ttl: time.Second} {
			lasts.Store(int64(lasting))
			pass(10 * time.Minute) // until only such terms count
			began.between()
			pass(10 * time.Minute)
			wantPauses(pause, pause, pause)
		}
	})
}

// Who pauses after a fault does not stand by in good order; who tries again does.
func TestCheck_ReportsAPauseAfterAFault(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := fxlock.NewMemoryStore()
		c := campaigns(t, store, func() error { return errBody })
		wantIs(t, c.Check(t.Context()), errBody)
		wantText(t, c.Check(t.Context()), `lead "nightly": `)
		release := holding(t, newLock(t, store)) // so that the next attempt is refused
		pass(2 * time.Second)
		noError(t, c.Check(t.Context()))
		release()
	})
}

// A term that ended well makes the next pause short, however short it was itself.
func TestLead_GoodTermShortensThePause(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var began moments
		var terms atomic.Int64
		campaigns(t, fxlock.NewMemoryStore(), func() error {
			began.note()
			if terms.Add(1)%3 == 0 {
				return nil
			}
			return errBody
		})
		pass(10 * time.Minute)
		for i, gap := range began.between() {
			if gap > 2500*time.Millisecond { // the pause after two errors in a row
				t.Fatalf("pause %d is %v", i, gap)
			}
		}
	})
}

// fn returned nil: others get their turn before the application campaigns again.
func TestLead_NilEndsTheTerm(t *testing.T) {
	const chosen = 7 * time.Second
	for pause, opts := range map[time.Duration][]any{chosen: {fxlock.TermPause(chosen)}, time.Second: nil} {
		t.Run(pause.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				var began moments
				store := newSpyStore(new(journal))
				c := campaigns(t, store, began.note, opts...)
				c.journal.expect(t, "standing by", "elected", "term ended")
				if !store.free() {
					t.Error("the lease was not released")
				}
				noError(t, c.Check(t.Context()))
				pass(pause - 1)
				c.journal.expect(t, "standing by", "elected", "term ended")
				pass(10 * pause)
				gaps := began.between()
				if len(gaps) != 10 {
					t.Errorf("%d terms", len(gaps)+1)
				}
				for i, gap := range gaps {
					if gap != pause {
						t.Errorf("pause %d is %v", i, gap)
					}
				}
			})
		})
	}
}

// With OneTerm the campaign is over after a term that went well, until the next start.
func TestOneTerm_StaysOut(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var terms atomic.Int64
		var fails atomic.Bool
		c := newCandidate(fxlock.NewMemoryStore(), func() error {
			terms.Add(1)
			if fails.Load() {
				return errBody
			}
			return nil
		}, fxlock.OneTerm())
		want := []string{}
		for range 2 {
			must(t, c.app.Start(t.Context()))
			pass(time.Hour)
			want = append(want, "standing by", "elected", "term ended", "stood down")
			c.journal.expect(t, want...)
			noError(t, c.Check(t.Context())) // it did what it was to do
			must(t, c.app.Stop(t.Context()))
		}
		fails.Store(true)
		must(t, c.app.Start(t.Context()))
		pass(time.Hour)
		must(t, c.app.Stop(t.Context()))
		if n := terms.Load(); n < 50 {
			t.Errorf("%d terms: it does not try again after errors", n)
		}
	})
}

// An error of fn that looks like one of ours does not end the campaign.
func TestLead_OnlyTheLockItselfEndsTheCampaign(t *testing.T) {
	for _, err := range []error{lockfx.ErrDisposed, context.Canceled, &lockfx.SkippedError{}, &lockfx.NotAcquiredError{}, lockfx.ErrTimeout} {
		t.Run(err.Error(), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				var began moments
				campaigns(t, fxlock.NewMemoryStore(), func() error { began.note(); return err }, fxlock.OneTerm())
				pass(time.Minute)
				if n := began.count(); n < 4 || n > 8 { // with a pause as after any error
					t.Errorf("%d terms in a minute", n)
				}
			})
		})
	}
}

// A condition of the module says when the application may lead; until then it is
// asked again and again, and that is no term.
func TestLead_ConditionKeepsFromLeading(t *testing.T) {
	for _, opts := range [][]any{nil, {fxlock.SkipOn(lockfx.ErrSkipped)}} {
		t.Run(fmt.Sprint(opts), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				var yes atomic.Bool
				var asked moments
				opts := append(opts, fxlock.OneTerm(), fxlock.If(func() bool { asked.note(); return yes.Load() }))
				c := campaigns(t, fxlock.NewMemoryStore(), func() {}, opts...)
				pass(time.Minute)
				c.journal.expect(t, "standing by")
				noError(t, c.Check(t.Context()))
				if n := asked.count(); n != 61 {
					t.Errorf("asked %d times in a minute", n)
				}
				yes.Store(true)
				pass(time.Second)
				c.journal.expect(t, "standing by", "elected", "term ended", "stood down")
			})
		})
	}
}

// The wait of the module is for others: a campaign waits for ever.
func TestLead_WaitsForever(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := newSpyStore(new(journal))
		leader := newLock(t, store)
		acquire := func() (bool, error) { return leader.Acquire(t.Context()) }
		if ok, err := acquire(); !ok || err != nil {
			t.Fatal(ok, err)
		}
		c := campaigns(t, store, untilToldTo, fxlock.Wait(time.Second))
		pass(100 * ttl)
		c.journal.expect(t, "standing by")
		_, err := leader.Release(t.Context())
		must(t, err)
		leads(t, true, c) // at once
	})
}

// While the store is away the campaign goes on, and Check says so.
func TestLead_OutageWhileStandingBy(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := newFarStore()
		store.away.Store(true)
		c := campaigns(t, store, untilToldTo)
		for range 3 {
			pass(time.Minute)
			wantIs(t, c.Check(t.Context()), lockfx.ErrStore, errAway)
		}
		c.journal.expect(t, "standing by")
		store.away.Store(false)
		pass(2 * time.Second)
		leads(t, true, c)
		noError(t, c.Check(t.Context()))
	})
}

// The store is back, and another leads: that is good order.
func TestLead_OutageWhileAnotherLeads(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := newFarStore()
		campaigns(t, store.MemoryStore, untilToldTo)
		c := campaigns(t, store, func() { t.Error("it led") })
		store.away.Store(true)
		pass(2 * ttl)
		wantIs(t, c.Check(t.Context()), lockfx.ErrStore, errAway)
		store.away.Store(false)
		pass(2 * time.Second)
		noError(t, c.Check(t.Context()))
	})
}

// What is no grant is no term, and is told again and again, at growing intervals.
func TestLead_BadGrantIsNoTerm(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := newSpyStore(new(journal))
		var asked moments
		store.acquire = func(lockfx.Grant, error) (lockfx.Grant, error) {
			asked.note()
			return lockfx.Grant{OK: true}, nil
		}
		c := campaigns(t, store, func() { t.Error("fn ran without a token") })
		pass(time.Minute)
		wantIs(t, c.Check(t.Context()), lockfx.ErrBadGrant)
		if n := asked.count(); n < 5 || n > 8 {
			t.Errorf("asked %d times in a minute", n)
		}
		c.journal.expect(t, "standing by")
	})
}

// A fn that ends its goroutine ends its term, and no more.
func TestLead_GoexitEndsTheTerm(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := newSpyStore(new(journal))
		var terms atomic.Int64
		c := campaigns(t, store, func(ctx context.Context) error {
			if terms.Add(1) == 1 {
				runtime.Goexit()
			}
			return untilToldTo(ctx)
		})
		c.journal.expect(t, "standing by", "elected", "term ended: fn panicked or ended its goroutine")
		if !store.free() {
			t.Error("the lease was not released")
		}
		pass(2 * time.Second)
		leads(t, true, c)
	})
}

// IsLeader judges by the clock: a process that was paused does not trust itself,
// before any timer has fired.
func TestIsLeader_HeedsTheLocalDeadline(t *testing.T) {
	clock := &leapingClock{now: time.Now()}
	elected := make(chan struct{})
	c := newCandidate(fxlock.NewMemoryStore(fxlock.MemoryStoreClock(clock.Now)), func(ctx context.Context) error {
		close(elected)
		return untilToldTo(ctx)
	}, fxlock.WithClock(clock))
	must(t, c.app.Start(t.Context()))
	<-elected
	if !c.IsLeader() || !c.Token().Valid() {
		t.Error("it does not lead")
	}
	if n := testing.AllocsPerRun(100, func() { c.IsLeader() }); n != 0 {
		t.Errorf("IsLeader allocates %v times", n)
	}
	clock.now = clock.now.Add(ttl)
	if c.IsLeader() || c.Token() != 0 {
		t.Error("it trusts a lease whose deadline has passed")
	}
	wantText(t, c.Check(t.Context()), "was lost (expired) and its function still runs")
	must(t, c.app.Stop(t.Context()))
}

// The application's other callers of the lock are told that it is in use, or wait
// for their turn.
func TestLead_OthersMayTakeItsLock(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		release := make(chan struct{})
		c := campaigns(t, fxlock.NewMemoryStore(), func() { <-release }, fxlock.TermPause(time.Minute))
		err := c.lock.Run(t.Context(), func() {})
		var busy *lockfx.NotAcquiredError
		if !errors.As(err, &busy) || !busy.Self {
			t.Errorf("the run ended with %v", err)
		}
		done := make(chan error, 1)
		go func() { done <- c.lock.Run(t.Context(), func() {}, fxlock.WaitForever()) }()
		synctest.Wait()
		close(release)
		must(t, <-done)
	})
}
