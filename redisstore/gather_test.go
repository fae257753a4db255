package redisstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/storekit"
)

// ferry is the far side of a gatherer: a request takes a while, and renews what has an
// even token.
type ferry struct {
	takes time.Duration

	mu    sync.Mutex
	loads []int
}

func (f *ferry) carry(ctx context.Context, renewals []lockfx.Renewal) []lockfx.Result {
	f.mu.Lock()
	f.loads = append(f.loads, len(renewals))
	f.mu.Unlock()
	results := make([]lockfx.Result, len(renewals))
	ok := pause(ctx, f.takes)
	for i, r := range renewals {
		if results[i].OK = r.Token%2 == 0; !ok {
			results[i] = lockfx.Result{Err: context.Cause(ctx)}
		}
	}
	return results
}

func (f *ferry) gatherer() *gatherer { return &gatherer{send: f.carry, tasks: new(storekit.Tasks)} }

func renewal(n int) lockfx.Renewal { return lockfx.Renewal{Key: fmt.Sprint(n), Token: lockfx.Token(n)} }

// slowly is a renewal alone that takes d.
func slowly(ctx context.Context, d time.Duration) func() (bool, error) {
	return func() (bool, error) {
		if !pause(ctx, d) {
			return false, context.Cause(ctx)
		}
		return true, nil
	}
}

func TestARenewalAloneWaitsForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := new(ferry)
		g := f.gatherer()
		begun := time.Now()
		for range 3 {
			if ok, err := g.renew(t.Context(), renewal(1), slowly(t.Context(), time.Millisecond)); !ok || err != nil {
				t.Error(ok, err)
			}
		}
		if took := time.Since(begun); took != 3*time.Millisecond || len(f.loads) > 0 {
			t.Errorf("it took %v, and requests of %v", took, f.loads)
		}
	})
}

// Those that come while one is under way leave together when it is answered, and each
// gets its own answer.
func TestRenewalsOfOneMomentLeaveTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &ferry{takes: 3 * time.Millisecond}
		g := f.gatherer()
		begun := time.Now()
		var all sync.WaitGroup
		for n := range 1000 {
			all.Go(func() {
				ok, err := g.renew(t.Context(), renewal(n), func() (bool, error) {
					time.Sleep(time.Millisecond)
					return n%2 == 0, nil
				})
				if ok != (n%2 == 0) || err != nil {
					t.Errorf("renewal %d: %v, %v", n, ok, err)
				}
			})
		}
		all.Wait()
		if took := time.Since(begun); took != 4*time.Millisecond || len(f.loads) != 1 || f.loads[0] != 999 {
			t.Errorf("it took %v, and requests of %v", took, f.loads)
		}
	})
}

// One that hangs holds the others up for a moment only.
func TestAHangingRenewalHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &ferry{takes: time.Millisecond}
		g := f.gatherer()
		hanging, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := g.renew(hanging, renewal(0), slowly(hanging, time.Hour)); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		})
		for n := range 100 {
			time.Sleep(time.Millisecond)
			all.Go(func() {
				begun := time.Now()
				_, err := g.renew(t.Context(), renewal(2*n), slowly(t.Context(), time.Millisecond))
				if took := time.Since(begun); took > promptly+time.Millisecond || err != nil {
					t.Errorf("renewal %d took %v: %v", n, took, err)
				}
			})
		}
		all.Wait()
	})
}

// Who has left is not sent, and who is more patient is not cut short.
func TestWhoLeavesLeavesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &ferry{takes: 10 * time.Millisecond}
		g := f.gatherer()
		within := func(d time.Duration, want error) func() {
			return func() {
				ctx, cancel := context.WithTimeout(t.Context(), d)
				defer cancel()
				begun := time.Now()
				_, err := g.renew(ctx, renewal(2), slowly(ctx, 5*time.Millisecond))
				if took := time.Since(begun); !errors.Is(err, want) || took > d {
					t.Errorf("within %v: %v, after %v", d, err, took)
				}
			}
		}
		var all sync.WaitGroup
		all.Go(within(time.Minute, nil)) // alone, for 5 ms
		synctest.Wait()
		all.Go(within(2*time.Millisecond, context.DeadlineExceeded)) // before the others leave
		all.Go(within(8*time.Millisecond, context.DeadlineExceeded)) // on the way
		all.Go(within(20*time.Millisecond, nil))
		all.Wait()
		if len(f.loads) != 1 || f.loads[0] != 2 {
			t.Errorf("requests of %v", f.loads)
		}
		if err := g.tasks.Wait(t.Context()); err != nil || g.timer != nil || !g.since.IsZero() {
			t.Errorf("something is left: %v, %v, %v", err, g.timer, g.since)
		}
	})
}

// Renewals that left together are sent again, as one alone would be, when their
// connection hangs and the client can tell.
func TestAHangingConnectionCostsNoLease(t *testing.T) {
	server := &fakeServer{takes: 5 * time.Millisecond}
	s := storeOver(t, server)
	for range 2 { // the server answers promptly
		if ok, err := s.Renew(t.Context(), "warm", 1, time.Minute); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	server.mute.Store(true)
	ctx, cancel := context.WithCancel(t.Context())
	defer time.AfterFunc(time.Second, cancel).Stop() // as a heartbeat ends, which has no deadline
	var all sync.WaitGroup
	for n := range 20 {
		all.Go(func() {
			if ok, err := s.Renew(ctx, fmt.Sprint(n), 1, time.Minute); !ok || err != nil {
				t.Errorf("renewal %d: %v, %v", n, ok, err)
			}
		})
	}
	all.Wait()
	if server.mute.Load() {
		t.Error("no renewals left together")
	}
	if err := s.tasks.Wait(t.Context()); err != nil {
		t.Error(err)
	}
}
