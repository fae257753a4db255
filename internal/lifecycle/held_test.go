package lifecycle_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/lifecycle"
)

func TestMargin(t *testing.T) {
	for _, tt := range []struct{ ttl, want time.Duration }{
		{1, 0}, // a tenth of next to nothing
		{10, 1},
		{time.Millisecond, 100 * time.Microsecond},
		{20 * time.Millisecond, 2 * time.Millisecond}, // the tenth
		{22222222, 2222222},                           // about where the two meet
		{23 * time.Millisecond, 2230 * time.Microsecond},
		{time.Second, 12 * time.Millisecond},
		{30 * time.Second, 302 * time.Millisecond},
		{time.Hour, 36*time.Second + 2*time.Millisecond},
	} {
		if got := lifecycle.Margin(tt.ttl); got != tt.want {
			t.Errorf("margin(%v) = %v, want %v", tt.ttl, got, tt.want)
		}
		if got := lifecycle.Margin(tt.ttl); got < 0 || got > tt.ttl/10 {
			t.Errorf("margin(%v) = %v is not within a tenth", tt.ttl, got)
		}
	}
}

// leaps are where the two readings stand after the grant, and whether the lease
// can still be trusted.
var leaps = []struct {
	name       string
	wall, mono time.Duration
	held       bool
}{
	{"nothing passed", 0, 0, true},
	{"just before the deadline", trusted - 1, trusted - 1, true},
	{"at the deadline", trusted, trusted, false},
	{"suspended, not for long enough", trusted - 1, 0, true},
	{"suspended: only the wall clock knows", trusted, 0, false},
	{"the wall clock stands still", 0, trusted, false},
	{"set forward a day", 24 * time.Hour, 0, false},
	{"set back", -time.Hour, 0, true},
	{"set back, just before the deadline", -time.Hour, trusted - 1, true},
	{"set back, at the deadline", -time.Hour, trusted, false},
}

// No time passes in the bubble, so that no timer and no goroutine has run.
func TestHeldLooksAtTheClockItself(t *testing.T) {
	for _, tt := range leaps {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				var want lockfx.Token
				if tt.held {
					want = 1
				}
				err := r.Run(background, func(_ context.Context, h *lifecycle.Hold) error {
					r.clock.leap(tt.wall, tt.mono)
					if h.Held() != tt.held || r.Held() != tt.held || h.Token() != want || r.Token() != want {
						t.Errorf("held %v and %v, tokens %v and %v", h.Held(), r.Held(), h.Token(), r.Token())
					}
					if h.State() != lockfx.StateHeld || r.State() != lockfx.StateHeld {
						t.Errorf("something has run: %v, %v", h.State(), r.State())
					}
					return nil
				})
				if tt.held != (err == nil) || !tt.held && !errors.Is(err, lockfx.ErrLost) {
					t.Errorf("Run = %v", err)
				}
				r.wantCalls(t, "acquire", "release 1") // if lost, on a best effort
			})
		})
	}
}

func TestResumingHolderRenewsNothing(t *testing.T) {
	for _, tt := range leaps {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				r.acquire(t)
				r.clock.leap(tt.wall, tt.mono)
				held, err := r.Tick(background)
				if tt.held {
					if !held || err != nil || !r.Held() {
						t.Errorf("Tick = %v, %v", held, err)
					}
					r.wantCalls(t, "acquire", "renew 1")
				} else {
					var lost *lockfx.LostError
					if held || !errors.As(err, &lost) || lost.Reason != lockfx.ReasonExpired {
						t.Errorf("Tick = %v, %v", held, err)
					}
					r.wantCalls(t, "acquire")
					r.wantLosses(t, lockfx.ReasonExpired)
					r.wantState(t, lockfx.StateLost)
				}
				r.dispose(t)
			})
		})
	}
}

// The reply to a heartbeat finds a lease that has passed meanwhile, and no timer
// has said so yet. Even if the store did renew it, it is not trusted any more.
func TestAReplyAfterThePauseRenewsNothing(t *testing.T) {
	for _, tt := range leaps {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				r.acquire(t)
				var pause sync.Once // the heartbeat after it may be due at once
				r.store.renews(once(func(context.Context) {
					pause.Do(func() { r.clock.leap(tt.wall, tt.mono) })
				}))
				held, err := r.Tick(background)
				if held != tt.held || r.Held() != tt.held || tt.held != (err == nil) {
					t.Errorf("Tick = %v, %v, and Held is %v", held, err, r.Held())
				}
				if !tt.held {
					r.wantLosses(t, lockfx.ReasonExpired)
				}
				r.dispose(t)
				if got := r.store.calls("release"); !slices.Equal(got, []string{"release 1"}) { // the store may hold it still
					t.Errorf("given back: %q", got)
				}
			})
		})
	}
}

// The new lease would be good, but for a moment nobody held the old one: a holder
// that saw Held fail must not see it come back.
func TestALeaseThatPassedDoesNotComeBack(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.acquire(t)
		time.Sleep(beat / 2)
		r.store.renews(once(func(context.Context) {
			r.clock.leap(trusted-beat/2, trusted-beat/2)
			if r.Held() {
				t.Error("held at the deadline")
			}
		}))
		if held, err := r.Tick(background); held || !errors.Is(err, lockfx.ErrLost) || r.Held() {
			t.Errorf("Tick = %v, %v, and Held is %v", held, err, r.Held())
		}
		r.wantLosses(t, lockfx.ReasonExpired)
		r.dispose(t)
	})
}

// The wall clock was wrong as the heartbeat left and is put right before the
// reply: by that clock the new lease is over already.
func TestAWallClockPutRightCostsTheLease(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.acquire(t)
		r.clock.leap(-time.Hour, 0)
		r.store.renews(once(func(context.Context) { r.clock.leap(time.Hour, 0) }))
		if held, err := r.Tick(background); held || !errors.Is(err, lockfx.ErrLost) || r.Held() {
			t.Errorf("Tick = %v, %v, and Held is %v", held, err, r.Held())
		}
		r.dispose(t)
	})
}

// A suspension ends: what the timers find is a lease that has passed.
func TestASuspensionIsNoticedByTheNextTimer(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		err := r.Run(background, func(ctx context.Context, _ *lifecycle.Hold) error {
			r.clock.leap(time.Hour, 0)
			<-ctx.Done()
			return context.Cause(ctx)
		})
		if !errors.Is(err, lockfx.ErrLost) || r.store.calls("renew") != nil {
			t.Errorf("Run = %v after %q", err, r.store.calls("renew"))
		}
		r.wantLosses(t, lockfx.ReasonExpired)
	})
}

func TestAWallClockSetBackChangesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.acquire(t)
		for range 20 {
			r.clock.leap(-time.Hour, 0)
			time.Sleep(beat)
			synctest.Wait()
			if !r.Held() {
				t.Fatal("the lease was lost")
			}
		}
		if n := len(r.store.calls("renew")); n != 20 {
			t.Errorf("%d renewals in 20 heartbeats", n)
		}
		r.store.renews(never)
		asked := time.Now()
		r.clock.leap(-time.Hour, 0)
		time.Sleep(trusted - 1)
		synctest.Wait()
		if !r.Held() {
			t.Errorf("lost after %v", time.Since(asked))
		}
		time.Sleep(time.Nanosecond)
		if r.Held() {
			t.Error("held at the deadline")
		}
		synctest.Wait()
		r.wantState(t, lockfx.StateLost)
		r.dispose(t)
	})
}

func TestTheDeadlineCountsFromTheRequest(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		const slow = 7 * time.Second
		asked := r.clock.Now()
		r.store.acquires(func(_ context.Context, next lockfx.Token) (lockfx.Grant, error) {
			time.Sleep(slow)
			return lockfx.Grant{OK: true, Token: next}, nil
		})
		if err := r.Run(background, func(_ context.Context, h *lifecycle.Hold) error {
			if got := h.Deadline().Sub(asked); got != trusted {
				t.Errorf("the deadline is %v after the request, want %v", got, trusted)
			}
			r.store.renews(once(func(context.Context) { time.Sleep(slow) }))
			time.Sleep(beat - slow)
			synctest.Wait()
			if n := len(r.store.calls("renew")); n != 1 { // also counted from the request
				t.Errorf("%d renewals after one heartbeat", n)
			}
			time.Sleep(slow)
			synctest.Wait()
			if got := h.Deadline().Sub(asked); got != beat+trusted {
				t.Errorf("the deadline is %v after the request, want %v", got, beat+trusted)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	})
}
