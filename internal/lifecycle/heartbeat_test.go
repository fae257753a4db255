package lifecycle_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/lifecycle"
)

// bad are the answers to a renewal that are not a strict true.
var bad = []struct {
	name   string
	answer answer
	reason lockfx.Reason
	asked  bool // the lease is given back all the same: the store may still hold it
}{
	{"false", always(false, nil), lockfx.ReasonHeartbeatFailed, false},
	{"false and an error", always(false, errBoom), lockfx.ReasonStoreError, true},
	{"true and an error", always(true, errBoom), lockfx.ReasonStoreError, true},
	{"panic", once(func(context.Context) { panic(errBoom) }), lockfx.ReasonStoreError, true},
	{"the goroutine ends", once(func(context.Context) { runtime.Goexit() }), lockfx.ReasonStoreError, true},
	{"no answer", never, lockfx.ReasonExpired, true},
	{"true, too late", once(func(context.Context) { time.Sleep(trusted) }), lockfx.ReasonExpired, true},
}

func TestStrictHeartbeatLosesAtOnce(t *testing.T) {
	for _, tt := range bad {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				r.acquire(t)
				r.store.renews(tt.answer)
				due := beat
				if tt.reason == lockfx.ReasonExpired {
					due = trusted
				}
				time.Sleep(due - 1)
				synctest.Wait()
				r.wantState(t, lockfx.StateHeld)
				time.Sleep(time.Nanosecond)
				synctest.Wait()
				r.wantState(t, lockfx.StateLost)
				if n := r.clock.armed.Load(); n != 0 {
					t.Errorf("%d timers are armed after the loss", n)
				}
				time.Sleep(time.Hour)
				r.wantLosses(t, tt.reason)
				r.wantEvents(t, "acquired, lost")
				if n := len(r.store.calls("renew")); n != 1 {
					t.Errorf("%d renewals", n)
				}
				r.wantRelease(t, tt.asked)
				if asked := r.store.calls("release") != nil; asked != tt.asked {
					t.Errorf("the store was asked to release: %v", asked)
				}
				r.acquire(t) // and the lock can be used again
				r.wantRelease(t, true)
			})
		})
	}
}

func TestRenewRetryLosesOnlyWhenRefusedOrAtTheDeadline(t *testing.T) {
	for _, tt := range bad {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				r.acquire(t)
				r.store.renews(tt.answer)
				due, reason := trusted, lockfx.ReasonExpired
				if tt.reason == lockfx.ReasonHeartbeatFailed {
					due, reason = beat, tt.reason
				}
				time.Sleep(due - 1)
				synctest.Wait()
				r.wantState(t, lockfx.StateHeld)
				time.Sleep(time.Nanosecond)
				synctest.Wait()
				r.wantState(t, lockfx.StateLost)
				time.Sleep(time.Hour)
				r.wantLosses(t, reason)
				r.dispose(t)
			}, renewRetry)
		})
	}
}

func TestRenewRetryBacksOffUpToAHeartbeat(t *testing.T) {
	for failures, want := range []time.Duration{beat / 8, beat / 4, beat / 2, beat, beat, beat} {
		if got := lifecycle.BackOff(beat, failures); got != want {
			t.Errorf("after %d failures: %v, want %v", failures, got, want)
		}
	}
	if got := lifecycle.BackOff(1, 0); got != 1 {
		t.Errorf("the shortest back-off is %v", got)
	}
	inBubble(t, func(t *testing.T, r *rig) {
		start := time.Now()
		var at []time.Duration
		r.store.renews(func(context.Context, lockfx.Token) (bool, error) {
			at = append(at, time.Since(start))
			return false, errBoom
		})
		r.acquire(t)
		time.Sleep(ttl)
		synctest.Wait()
		want := []time.Duration{beat, beat + beat/8, beat + 3*beat/8, beat + 7*beat/8, beat + 15*beat/8}
		if !slices.Equal(at, want) {
			t.Errorf("attempts after %v, want %v", at, want)
		}
		r.dispose(t)
	}, renewRetry)
}

func TestRenewRetryRecovers(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.acquire(t)
		for range 10 { // the failures of one heartbeat do not count for the next
			r.store.renews(always(false, errBoom))
			before := len(r.store.calls("renew"))
			time.Sleep(beat)
			synctest.Wait()
			r.store.renews(nil)
			time.Sleep(beat / 8)
			synctest.Wait()
			if got := len(r.store.calls("renew")) - before; got != 2 {
				t.Fatalf("%d renewals, want one that failed and one that went well", got)
			}
		}
		if !r.Held() || r.Token() != 1 {
			t.Errorf("held %v, token %v", r.Held(), r.Token())
		}
		for _, e := range r.seen.all()[1:] {
			if e.Kind != lockfx.EventRenewFailed || !errors.Is(e.Err, errBoom) || !errors.Is(e.Err, lockfx.ErrStore) || e.Token != 1 {
				t.Errorf("event %v", e)
			}
		}
		r.dispose(t)
	}, renewRetry)
}

func TestARenewalThatHangsLeavesTimeForAnother(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.acquire(t)
		r.store.renews(never)
		time.Sleep(2 * beat) // the first is cut off after one heartbeat
		synctest.Wait()
		if e := r.seen.all()[1]; e.Kind != lockfx.EventRenewFailed || !errors.Is(e.Err, lockfx.ErrTimeout) {
			t.Errorf("event %v", e)
		}
		r.store.renews(nil)
		time.Sleep(beat / 8)
		synctest.Wait()
		if !r.Held() {
			t.Error("the lease was lost")
		}
		r.dispose(t)
	}, renewRetry)
}

// A clock that has no timer for that limit leaves the deadline as the only one.
func TestARenewalWithoutALimitIsBoundByTheDeadline(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.acquire(t)
		r.clock.left.Store(0)
		r.store.renews(never)
		time.Sleep(trusted)
		synctest.Wait()
		r.wantLosses(t, lockfx.ReasonExpired)
		r.dispose(t)
	}, renewRetry)
}

func TestNoTimerLosesTheLease(t *testing.T) {
	for _, tt := range []struct {
		name  string
		renew answer
		left  int64 // timers, counted from the grant
		retry bool
		due   time.Duration
	}{
		{"for the next heartbeat", nil, 0, false, beat},
		{"for the next attempt", always(false, errBoom), 1, true, beat}, // one limits the renewal
		{"for the rest of the lease", nil, 2, false, trusted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				r.acquire(t)
				r.clock.left.Store(tt.left)
				r.store.renews(tt.renew)
				time.Sleep(tt.due - 1)
				synctest.Wait()
				r.wantState(t, lockfx.StateHeld)
				time.Sleep(time.Nanosecond)
				synctest.Wait()
				r.wantState(t, lockfx.StateLost)
				r.wantLosses(t, lockfx.ReasonTimerUnarmable)
				r.wantRelease(t, true)
			}, func(c *lifecycle.Config) { c.RenewRetry = tt.retry })
		})
	}
}

// A clock may begin at any time, also at the zero one: that is a time like others.
func TestAClockMayBeginAtZero(t *testing.T) {
	r := newRig(t, func(c *lifecycle.Config) { c.Clock = stopped{} })
	r.acquire(t)
	for range 2 {
		if held, err := r.Tick(background); !held || err != nil {
			t.Fatalf("Tick = %v, %v", held, err)
		}
	}
	r.wantRelease(t, true)
	r.wantCalls(t, "acquire", "renew 1", "renew 1", "release 1")
}

// stopped is a clock that stands at zero, and whose timers never fire.
type stopped struct{}

func (stopped) Now() time.Time                               { return time.Time{} }
func (stopped) AfterFunc(time.Duration, func()) lockfx.Timer { return stopped{} }
func (stopped) Stop() bool                                   { return true }

func TestTick(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		want := func(wantHeld bool, wantErr error) {
			t.Helper()
			if held, err := r.Tick(background); held != wantHeld || !errors.Is(err, wantErr) {
				t.Errorf("%v: Tick = %v, %v; want %v, %v", r.State(), held, err, wantHeld, wantErr)
			}
		}
		want(false, nil)
		r.acquire(t)
		want(true, nil)

		dead, cancel := context.WithCancelCause(background)
		cancel(errCause)
		if held, err := r.Tick(dead); !held || !errors.Is(err, context.Canceled) || !errors.Is(err, errCause) {
			t.Errorf("Tick with a dead context = %v, %v", held, err)
		}
		r.wantCalls(t, "acquire", "renew 1")

		time.Sleep(beat - 1) // a Tick postpones the timer's heartbeat
		want(true, nil)
		time.Sleep(beat - 1)
		synctest.Wait()
		r.wantCalls(t, "acquire", "renew 1", "renew 1")

		r.store.renews(always(false, nil))
		want(false, lockfx.ErrLost)
		want(false, lockfx.ErrLost) // it stays lost, and the store is not asked
		r.wantCalls(t, "acquire", "renew 1", "renew 1", "renew 1")
		r.wantRelease(t, false)
		want(false, nil)

		r.store.renews(nil)
		r.acquire(t)
		r.dispose(t)
		want(false, nil)
		if n := len(r.store.calls("renew")); n != 3 {
			t.Errorf("%d renewals", n)
		}
	})
}

func TestTickReportsAFailureThatIsTriedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.acquire(t)
		r.store.renews(always(false, errBoom))
		if held, err := r.Tick(background); !held || !errors.Is(err, errBoom) || !errors.Is(err, lockfx.ErrStore) {
			t.Errorf("Tick = %v, %v", held, err)
		}
		r.dispose(t)
	}, renewRetry)
}

func TestTickWaitsForTheRenewalUnderWay(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.acquire(t)
		inside := 0
		r.store.renews(once(func(context.Context) {
			if inside++; inside != 1 {
				t.Errorf("%d renewals at once", inside)
			}
			time.Sleep(time.Second)
			inside--
		}))
		for range 5 {
			go func() {
				if held, err := r.Tick(background); !held || err != nil {
					t.Errorf("Tick = %v, %v", held, err)
				}
			}()
		}
		synctest.Wait()
		brief, cancel := context.WithTimeoutCause(background, time.Second/2, errCause)
		defer cancel()
		if held, err := r.Tick(brief); !held || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, errCause) {
			t.Errorf("Tick without time to wait = %v, %v", held, err)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if n := len(r.store.calls("renew")); n != 5 {
			t.Errorf("%d renewals for 5 ticks", n)
		}
		r.dispose(t)
	})
}

// A beat that fires while a Tick renews waits its turn, and leaves one timer.
func TestABeatDuringATickLeavesOneTimer(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.acquire(t)
		time.Sleep(beat)
		for range 3 {
			go func() { _, _ = r.Tick(background) }()
		}
		synctest.Wait()
		if n := r.clock.armed.Load(); n != 2 {
			t.Errorf("%d timers, want the beat and the expiry", n)
		}
		before := len(r.store.calls("renew"))
		time.Sleep(beat)
		synctest.Wait()
		if n := len(r.store.calls("renew")) - before; n != 1 {
			t.Errorf("%d renewals in the next heartbeat", n)
		}
		r.dispose(t)
	})
}

func TestOnlyAStrictTrueIsARelease(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer answer
		ok     bool
		err    error
	}{
		{"true", always(true, nil), true, nil},
		{"false", always(false, nil), false, nil},
		{"true and an error", always(true, errBoom), false, errBoom},
		{"false and an error", always(false, errBoom), false, errBoom},
		{"panic", once(func(context.Context) { panic(errBoom) }), false, errBoom},
		{"no answer", never, false, lockfx.ErrTimeout},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				r.wantRelease(t, false) // of nothing
				r.wantCalls(t)
				r.acquire(t)
				r.store.releases(tt.answer)
				ok, err := r.Release(background)
				if ok != tt.ok || !errors.Is(err, tt.err) || tt.err != nil && !errors.Is(err, lockfx.ErrStore) {
					t.Errorf("Release = %v, %v; want %v, %v", ok, err, tt.ok, tt.err)
				}
				r.wantState(t, lockfx.StateReleased) // all the same
				e := r.seen.all()[1]
				if e.Kind != lockfx.EventReleased || e.Reason != lockfx.ReasonReleased || tt.ok != (e.Err == nil) {
					t.Errorf("event %v", e)
				}
				r.wantRelease(t, false) // again
				r.wantCalls(t, "acquire", "release 1")
			})
		})
	}
}

func TestAReleaseEndsTheRenewalFirst(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.acquire(t)
		r.store.renews(once(func(ctx context.Context) {
			<-ctx.Done()
			time.Sleep(time.Second) // it does not end at once
			r.store.note("renewed")
		}))
		time.Sleep(beat)
		synctest.Wait()
		r.wantRelease(t, true)
		r.wantCalls(t, "acquire", "renew 1", "renewed", "release 1")
		r.wantLosses(t)
		time.Sleep(time.Hour)
		r.wantCalls(t, "acquire", "renew 1", "renewed", "release 1")
	})
}

// The holder has heard of the loss already. What the store says to the best effort
// is no news.
func TestReleasingALeaseOfUnknownFateIsQuiet(t *testing.T) {
	for _, answer := range []answer{always(false, errBoom), always(false, nil), once(func(context.Context) { panic(errBoom) })} {
		inBubble(t, func(t *testing.T, r *rig) {
			r.store.renews(always(false, errBoom))
			r.store.releases(answer)
			r.acquire(t)
			time.Sleep(beat)
			synctest.Wait()
			r.wantRelease(t, false)
			r.wantCalls(t, "acquire", "renew 1", "release 1")
			if e := r.seen.all()[2]; e.Kind != lockfx.EventReleased || e.Reason != lockfx.ReasonStoreError || e.Err != nil {
				t.Errorf("event %v", e)
			}
		})
	}
}

func TestAReleaseDoesNotWaitForEverForARenewal(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.acquire(t)
		const deaf = time.Hour
		r.store.renews(once(func(context.Context) { time.Sleep(deaf) }))
		time.Sleep(beat)
		synctest.Wait()
		asked := time.Now()
		ok, err := r.Release(background)
		if ok || !errors.Is(err, lockfx.ErrStore) || !errors.Is(err, lockfx.ErrTimeout) || time.Since(asked) != 5*time.Second {
			t.Errorf("Release = %v, %v after %v", ok, err, time.Since(asked))
		}
		r.wantState(t, lockfx.StateReleased)
		r.acquire(t) // the renewal that comes late is not this hold's
		r.store.renews(nil)
		time.Sleep(deaf)
		synctest.Wait()
		if !r.Held() || r.Token() != 2 {
			t.Errorf("held %v, token %v", r.Held(), r.Token())
		}
		r.dispose(t)
	})
}
