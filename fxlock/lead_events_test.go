package fxlock_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

// Subscribers hear of a loss when it happens, not when fn has returned; nor do they wait
// for an observer of the lock.
func TestSubscribe_LostComesWhileFnStillRuns(t *testing.T) {
	const lost = `lost: hold "nightly": lease lost: heartbeat failed (token 946684800000000)`
	for name, opts := range map[string]func(done <-chan struct{}) []any{
		"alone": func(<-chan struct{}) []any { return nil },
		"with an observer that blocks": func(done <-chan struct{}) []any {
			return []any{fxlock.Observer(func(e lockfx.Event) {
				if e.Kind == lockfx.EventLost {
					<-done
				}
			})}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				store, done := fxlock.NewMemoryStore(), make(chan struct{})
				c := campaigns(t, store, func() { <-done }, opts(done)...)
				_, err := store.Break(t.Context(), key)
				must(t, err)
				pass(oneBeat)
				c.journal.expect(t, "standing by", "elected", lost)
				close(done)
				synctest.Wait()
				if all := c.journal.all(); len(all) < 4 || all[3] != "term ended: "+lost[len("lost: "):] {
					t.Errorf("what happened: %q", all)
				}
			})
		})
	}
}

// Also when the term was told to end before: by a stop that runs out of time, or StepDown.
func TestSubscribe_LostComesAfterTheTermWasCancelled(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store, done := fxlock.NewMemoryStore(), make(chan struct{})
		c := campaigns(t, store, func() { <-done })
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := c.StepDown(ctx)
		wantIs(t, err, context.DeadlineExceeded)
		wantText(t, err, `lead "nightly": step down: the term of token 946684800000000 has not ended`)
		leads(t, true, c)
		_, err = store.Break(t.Context(), key)
		must(t, err)
		pass(oneBeat)
		c.journal.expect(t, "standing by", "elected", `lost: hold "nightly": lease lost: heartbeat failed (token 946684800000000)`)
		close(done)
	})
}

// Whoever subscribes hears first how things are.
func TestSubscribe_BeginsWithThePresentState(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := fxlock.NewMemoryStore()
		one := newCandidate(store, func(ctx context.Context) { <-ctx.Done(); time.Sleep(time.Second) }, fxlock.WithLabel("one"))
		two := newCandidate(store, untilToldTo, fxlock.WithLabel("two"))
		hears := func(c *candidate, want ...string) {
			t.Helper()
			synctest.Wait()
			late := new(candidate)
			stop := c.Subscribe(late.note)
			synctest.Wait()
			late.journal.expect(t, want...)
			stop()
		}
		hears(one)
		must(t, one.app.Start(t.Context()))
		hears(one, "elected")
		must(t, two.app.Start(t.Context()))
		hears(two, "standing by", "leader changed: one")
		_, err := store.Break(t.Context(), key)
		must(t, err)
		pass(oneBeat)
		hears(one, `lost: hold "nightly": lease lost: heartbeat failed (token 946684800000000)`)
		hears(two, "elected")
		must(t, one.app.Stop(t.Context()))
		must(t, two.app.Stop(t.Context()))
		hears(two, "stood down")
	})
}

// Those who stand by hear who leads, at each change, and the store is asked no more often
// for it.
func TestSubscribe_LeaderChangedReachesThoseWhoStandBy(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := newSpyStore(new(journal))
		one := newCandidate(store, untilToldTo, fxlock.WithLabel("one"))
		must(t, one.app.Start(t.Context()))
		synctest.Wait()
		two := newCandidate(store, untilToldTo, fxlock.WithLabel("two"))
		must(t, two.app.Start(t.Context()))
		pass(time.Second)
		three := campaigns(t, store, untilToldTo, fxlock.WithLabel("three"))
		pass(time.Hour)
		asked := len(store.labels)
		must(t, one.app.Stop(t.Context()))
		pass(time.Second)
		first, second := two, three
		if three.IsLeader() {
			first, second = three, two
		}
		leads(t, true, first)
		leads(t, false, second)
		label := map[*candidate]string{two: "two", three: "three"}
		first.journal.expect(t, "standing by", "leader changed: one", "elected")
		second.journal.expect(t, "standing by", "leader changed: one", "leader changed: "+label[first])
		if more := len(store.labels) - asked; more > 3 {
			t.Errorf("asked %d times for a change", more)
		}
		must(t, two.app.Stop(t.Context()))
	})
}

// A leader that comes back is a change for one that has led meanwhile.
func TestLeaderChanged_ToTheSameAgain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := fxlock.NewMemoryStore()
		one := campaigns(t, store, untilToldTo, fxlock.WithLabel("one"))
		two := campaigns(t, store, untilToldTo, fxlock.WithLabel("two"))
		for range 2 {
			must(t, one.StepDown(t.Context()))
			pass(time.Minute)
			must(t, two.StepDown(t.Context()))
			pass(time.Minute)
		}
		term := []string{"standing by", "leader changed: one", "elected", "term ended"}
		two.journal.expect(t, slices.Concat(term, term, term[:2])...)
	})
}

// A subscriber that was too slow hears how much it has missed.
func TestSubscribe_SlowSubscriberGetsTheCountOfMissedChanges(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		missed := make(chan int, 1000)
		release := make(chan struct{})
		c := newCandidate(fxlock.NewMemoryStore(), func() {})
		c.Subscribe(func(e fxlock.LeadershipEvent) {
			missed <- e.Missed
			<-release
		})
		c.start(t)
		pass(time.Minute)
		close(release)
		synctest.Wait()
		if n, first, second := len(missed), <-missed, <-missed; n != 65 || first != 0 || second < 100 {
			t.Errorf("heard %d changes; missed %d and %d before the first two", n, first, second)
		}
	})
}

// A lease that this application could not give back is no other leader.
func TestLeaderChanged_IsNotAboutALeaseLeftBehind(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := newSpyStore(new(journal))
		store.release = func() (bool, error) { return false, errCleanup }
		c := campaigns(t, store, func() {})
		pass(ttl + time.Second)
		c.journal.expect(t, "standing by", "elected", "term ended", "standing by", "elected", "term ended")
	})
}

// A leader can be told to step down: another one leads, and later it may lead again.
func TestStepDown_HandsOver(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := fxlock.NewMemoryStore()
		var cause error
		one := campaigns(t, store, func(ctx context.Context) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			time.Sleep(time.Minute)
			return cause
		}, fxlock.OneTerm())
		two := campaigns(t, store, untilToldTo)
		begun := time.Now()
		must(t, one.StepDown(t.Context()))
		if took := time.Since(begun); took != time.Minute {
			t.Errorf("it took %v", took)
		}
		wantIs(t, cause, fxlock.ErrSteppedDown)
		leads(t, false, one)
		leads(t, true, two)
		one.journal.expect(t, "standing by", "elected", "term ended")
		noError(t, one.Check(t.Context()))
		pass(time.Minute)
		must(t, one.StepDown(t.Context())) // it stands by: there is nothing to do
		leads(t, true, two)
		must(t, two.StepDown(t.Context()))
		leads(t, true, one)
	})
}

// fn may ask for the end of its own term, and is not waited for.
func TestStepDown_ByTheFunctionItself(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var c *candidate
		steppedDown := errors.New("not called")
		c = newCandidate(fxlock.NewMemoryStore(), func(ctx context.Context) {
			steppedDown = c.StepDown(ctx)
		}, fxlock.TermPause(time.Hour))
		c.start(t)
		noError(t, steppedDown)
		c.journal.expect(t, "standing by", "elected", "term ended")
	})
}
