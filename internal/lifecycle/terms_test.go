package lifecycle_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/lifecycle"
	"github.com/lockfx/lockfx/internal/memstore"
)

const minHold = 5 * time.Minute

// kept is a rig over a memory store, which shows for how long a key is kept.
type kept struct {
	*rig
	mem   *memstore.Store
	began time.Time
}

// wantKept checks that nobody gets the key before d has passed since the beginning,
// and that it is to be had then.
func (k *kept) wantKept(t *testing.T, d time.Duration) {
	t.Helper()
	lease, err := k.mem.Inspect(background, key)
	left := max(d-time.Since(k.began), 0)
	if err != nil || lease.TimeLeft != left {
		t.Errorf("the key is kept for %v more, want %v: %v", lease.TimeLeft, left, err)
	}
	time.Sleep(left)
	if grant, err := k.mem.Acquire(background, key, ttl); !grant.OK {
		t.Errorf("the key is not free after %v: %+v, %v", d, grant, err)
	}
}

// inKept runs test with a rig over a memory store in a bubble.
func inKept(t *testing.T, test func(t *testing.T, k *kept), changes ...func(*lifecycle.Config)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		k := &kept{mem: memstore.New(), began: time.Now()}
		k.rig = newRig(t, append([]func(*lifecycle.Config){func(c *lifecycle.Config) { c.Store = k.mem }}, changes...)...)
		test(t, k)
		synctest.Wait()
		if n := k.clock.armed.Load(); n != 0 {
			t.Errorf("%d timers are left armed", n)
		}
	})
}

// The outcomes of a job that takes a second.
var outcomes = map[string]func(ctx context.Context, k *kept) error{
	"nil":      func(context.Context, *kept) error { return nil },
	"an error": func(context.Context, *kept) error { return errCause },
	"a panic":  func(context.Context, *kept) error { panic(panicValue) },
	"an exit":  func(context.Context, *kept) error { runtime.Goexit(); return nil },
	"disposed": func(ctx context.Context, k *kept) error {
		go func() { _ = k.Dispose(background) }()
		<-ctx.Done()
		return context.Cause(ctx)
	},
}

func TestMinHoldKeepsTheKeyWhateverTheOutcome(t *testing.T) {
	for name, outcome := range outcomes {
		t.Run(name, func(t *testing.T) {
			inKept(t, func(t *testing.T, k *kept) {
				ended := spawn(func() error {
					return k.RunOn(background, lifecycle.Terms{MinHold: minHold}, func(ctx context.Context, _ *lifecycle.Hold) error {
						time.Sleep(time.Second)
						return outcome(ctx, k)
					})
				})
				<-ended
				k.wantState(t, lockfx.StateReleased)
				synctest.Wait()
				for _, e := range k.seen.all() {
					if e.Kind == lockfx.EventReleased && (e.KeptFor != minHold-time.Second || e.Err != nil) {
						t.Errorf("released, and kept for %v: %v", e.KeptFor, e.Err)
					}
				}
				k.wantKept(t, minHold)
			})
		})
	}
}

func TestMinHoldOfAHoldByHand(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, k *kept){
		"released": func(t *testing.T, k *kept) { k.wantRelease(t, true) },
		"disposed": func(t *testing.T, k *kept) { k.dispose(t) },
	} {
		t.Run(name, func(t *testing.T) {
			inKept(t, func(t *testing.T, k *kept) {
				k.acquire(t)
				time.Sleep(time.Minute) // some heartbeats
				end(t, k)
				k.wantKept(t, minHold)
			}, func(c *lifecycle.Config) { c.Terms.MinHold = minHold })
		})
	}
}

// A longer job has kept the key long enough.
func TestMinHoldIsOver(t *testing.T) {
	inKept(t, func(t *testing.T, k *kept) {
		err := k.RunOn(background, lifecycle.Terms{MinHold: minHold}, func(context.Context, *lifecycle.Hold) error {
			time.Sleep(minHold)
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		k.wantKept(t, minHold)
	})
}

// A process that dies in the body owes MinHold too: at every moment the lease at the store
// lasts at least for the rest of it.
func TestMinHold_IsKeptByAProcessThatDies(t *testing.T) {
	for name, terms := range map[string]lifecycle.Terms{
		"at once": {MinHold: minHold}, "later": {MinHold: minHold, OweLater: true},
	} {
		t.Run(name, func(t *testing.T) {
			inKept(t, func(t *testing.T, k *kept) {
				err := k.RunOn(background, terms, func(context.Context, *lifecycle.Hold) error {
					for range 40 {
						lease, err := k.mem.Inspect(background, key)
						if rest := minHold - time.Since(k.began); err != nil || lease.TimeLeft < rest {
							t.Errorf("killed now, the key would be kept for %v, want at least %v: %v", lease.TimeLeft, rest, err)
						}
						time.Sleep(minHold / 35)
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A run whose body did not begin keeps nothing.
func TestMinHold_IsOwedFromTheBeginningOfTheBody(t *testing.T) {
	for _, owe := range []bool{false, true} {
		inKept(t, func(t *testing.T, k *kept) {
			err := k.RunOn(background, lifecycle.Terms{MinHold: minHold, OweLater: true}, func(_ context.Context, h *lifecycle.Hold) error {
				if owe {
					h.Owe()
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
			want := time.Duration(0)
			if owe {
				want = minHold
			}
			k.wantKept(t, want)
		})
	}
}

// After a loss whose outcome is unknown the lease may still be there, and is kept; one
// that the store told us of is another's.
func TestMinHoldAfterALoss(t *testing.T) {
	for name, test := range map[string]struct {
		renew answer
		want  []string
	}{
		"unknown": {always(false, errCause), []string{"renew 1", "renew 1"}},
		"refused": {always(false, nil), []string{"renew 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				r.store.renews(test.renew)
				err := r.RunOn(background, lifecycle.Terms{MinHold: minHold}, func(ctx context.Context, _ *lifecycle.Hold) error {
					<-ctx.Done()
					r.store.renews(nil)
					return nil
				})
				if !errors.Is(err, lockfx.ErrLost) {
					t.Errorf("err = %v", err)
				}
				r.wantCalls(t, append([]string{"acquire"}, test.want...)...)
			})
		})
	}
}

// coarse is a store with a resolution.
type coarse struct {
	*memstore.Store
	resolution time.Duration
	renewals   []time.Duration
}

func (s *coarse) Renew(ctx context.Context, k string, token lockfx.Token, ttl time.Duration) (bool, error) {
	s.renewals = append(s.renewals, ttl)
	if err := lockfx.CheckTTL(ttl, s.resolution); err != nil {
		return false, err
	}
	return s.Store.Renew(ctx, k, token, ttl)
}

// A rest below the store's resolution keeps the key a little longer, never shorter,
// and not for the whole ttl.
func TestMinHoldBelowTheResolutionOfTheStore(t *testing.T) {
	for rest, want := range map[time.Duration]time.Duration{
		time.Second:             time.Second,
		time.Second - 1:         2*time.Second - 2,
		700 * time.Millisecond:  1400 * time.Millisecond,
		time.Millisecond:        1024 * time.Millisecond,
		time.Nanosecond:         (1 << 30) * time.Nanosecond,
		1200 * time.Millisecond: 1200 * time.Millisecond,
	} {
		t.Run(rest.String(), func(t *testing.T) {
			store := &coarse{resolution: time.Second}
			inKept(t, func(t *testing.T, k *kept) {
				store.Store = k.mem
				err := k.RunOn(background, lifecycle.Terms{MinHold: time.Second + rest}, func(context.Context, *lifecycle.Hold) error {
					time.Sleep(time.Second)
					return nil
				})
				if err != nil {
					t.Error(err)
				}
				k.wantKept(t, time.Second+want)
			}, func(c *lifecycle.Config) { c.Store = store })
		})
	}
}

// What the store does not take at all is an error of the run, and the lease ends by
// itself.
func TestMinHoldThatTheStoreRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		renew answer
		want  error
	}{
		"for good":  {always(false, lockfx.ErrConfig), lockfx.ErrConfig},
		"an outage": {always(false, errCause), errCause},
		"a panic":   {func(context.Context, lockfx.Token) (bool, error) { panic(errCause) }, errCause},
		"too late":  {never, lockfx.ErrTimeout},
		"lost":      {always(false, nil), lockfx.ErrLost},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				r.store.renews(test.renew)
				err := r.RunOn(background, lifecycle.Terms{MinHold: time.Second}, func(context.Context, *lifecycle.Hold) error { return nil })
				if !errors.Is(err, test.want) {
					t.Errorf("err = %v", err)
				}
				r.wantState(t, lockfx.StateReleased)
				synctest.Wait()
				last := r.seen.all()[len(r.seen.all())-1]
				if last.Kind != lockfx.EventReleased || last.RetryAfter != 0 || last.Err == nil {
					t.Errorf("the last event is %v, and keeps the key for %v", last, last.RetryAfter)
				}
			}, func(c *lifecycle.Config) { c.CallTimeout = time.Second })
		})
	}
}

func TestMaxHoldEndsTheHoldExactlyThen(t *testing.T) {
	for _, d := range []time.Duration{time.Second, beat, beat + 1, trusted, ttl, 10*ttl + 7} {
		for _, changes := range [][]func(*lifecycle.Config){nil, {renewRetry}} {
			t.Run(d.String(), func(t *testing.T) {
				inBubble(t, func(t *testing.T, r *rig) {
					began := time.Now()
					r.store.acquires(func(_ context.Context, next lockfx.Token) (lockfx.Grant, error) {
						time.Sleep(time.Millisecond) // it counts from when the request left
						return lockfx.Grant{OK: true, Token: next}, nil
					})
					err := r.RunOn(background, lifecycle.Terms{MaxHold: d}, func(ctx context.Context, h *lifecycle.Hold) error {
						time.Sleep(time.Until(began.Add(d)) - 1)
						if !h.Held() || ctx.Err() != nil {
							t.Errorf("a nanosecond before it is over, Held is %v: %v", h.Held(), context.Cause(ctx))
						}
						<-ctx.Done()
						var lost *lockfx.LostError
						if passed := time.Since(began); passed != d || !errors.As(context.Cause(ctx), &lost) || lost.Reason != lockfx.ReasonMaxHold || h.Held() {
							t.Errorf("after %v, Held is %v: %v", passed, h.Held(), context.Cause(ctx))
						}
						if released := r.store.calls("release"); len(released) > 0 {
							t.Errorf("released under the body: %v", released)
						}
						time.Sleep(time.Hour)
						return nil
					})
					if !errors.Is(err, lockfx.ErrLost) {
						t.Errorf("err = %v", err)
					}
					if n := len(r.store.calls("renew")); n != int((d-1)/beat) {
						t.Errorf("%d heartbeats within %v", n, d)
					}
					if n := len(r.store.calls("release")); n != 1 {
						t.Errorf("released %d times after the body", n)
					}
					r.wantLosses(t, lockfx.ReasonMaxHold)
					r.wantEvents(t, "acquired, lost, released")
				}, changes...)
			})
		}
	}
}

func TestMaxHoldOfAHoldByHand(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.acquire(t)
		time.Sleep(time.Minute)
		synctest.Wait()
		r.wantState(t, lockfx.StateLost)
		r.wantLosses(t, lockfx.ReasonMaxHold)
		r.wantRelease(t, true) // the store still knows it
	}, func(c *lifecycle.Config) { c.Terms.MaxHold = time.Minute })
}

// A lease that ends earlier is lost for its own reason.
func TestMaxHoldIsNotTheReasonOfAnEarlierLoss(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.store.renews(always(false, errCause))
		err := r.RunOn(background, lifecycle.Terms{MaxHold: time.Hour}, func(ctx context.Context, _ *lifecycle.Hold) error {
			<-ctx.Done()
			return nil
		})
		var lost *lockfx.LostError
		if !errors.As(err, &lost) || lost.Reason != lockfx.ReasonExpired {
			t.Errorf("err = %v", err)
		}
	}, renewRetry)
}

func TestMinHoldExceedsMaxHold(t *testing.T) {
	_, err := lifecycle.New(lifecycle.Config{Key: key, Store: &script{}, TTL: ttl, Terms: lifecycle.Terms{MinHold: 2, MaxHold: 1}})
	if !errors.Is(err, lockfx.ErrConfig) || !strings.Contains(err.Error(), "min hold 2ns must be at most the max hold of 1ns") {
		t.Errorf("err = %v", err)
	}
}
