package queue_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/lifecycle"
	"github.com/lockfx/lockfx/internal/queue"
)

func TestCallersAreServedInTheOrderInWhichTheyCame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t, newSpy())
		release := p.hold(t)
		var served []int
		var calls []<-chan ended
		for i := range 20 {
			ctx, leave := context.WithCancel(background)
			defer leave()
			calls = append(calls, spawn(func() error {
				return p.run(ctx, queue.Forever, func(context.Context, *lifecycle.Hold) error {
					served = append(served, i)
					return nil
				})
			}))
			if i%3 == 2 {
				leave()
				wantNow(t, calls[i], context.Canceled)
			}
		}
		release()
		for i, call := range calls {
			if i%3 != 2 {
				wantNow(t, call)
			}
		}
		if want := []int{0, 1, 3, 4, 6, 7, 9, 10, 12, 13, 15, 16, 18, 19}; !slices.Equal(served, want) {
			t.Errorf("served were %v, want those who stayed: %v", served, want)
		}
	})
}

func TestATryNeverOvertakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newSpy()
		release := newProcess(t, store).hold(t)
		p := newProcess(t, store)
		waiter := spawn(func() error { return p.run(background, queue.Forever, nothing) })
		if p.line.Idle() || p.State() != lockfx.StateIdle {
			t.Errorf("the queue is idle: %v; the lock is %v: the waiter is between two attempts", p.line.Idle(), p.State())
		}
		asked := len(store.asked("acquire", time.Time{}))
		var refusal *lockfx.NotAcquiredError
		if err := p.run(background, 0, nothing); !errors.As(err, &refusal) || !refusal.Self || refusal.Key != key {
			t.Errorf("err = %v", err)
		}
		if n := len(store.asked("acquire", time.Time{})); n != asked {
			t.Errorf("the store was asked %d times by a try that is not its turn", n-asked)
		}
		release()
		wantNow(t, waiter)
		if !p.line.Idle() {
			t.Error("the queue is not idle in the end")
		}
		wantIs(t, p.run(background, 0, nothing))
	})
}

func TestDisposalIsToldToATryThatIsNotItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t, newSpy())
		release := p.hold(t)
		disposed := spawn(func() error { return p.Dispose(background) })
		wantIs(t, p.run(background, 0, nothing), lockfx.ErrDisposed)
		wantIs(t, p.run(background, time.Hour, nothing), lockfx.ErrDisposed)
		release()
		wantNow(t, disposed)
		wantIs(t, p.run(background, time.Hour, nothing), lockfx.ErrDisposed)
	})
}

// A waiter that leaves has left: the others neither wait for it nor for its turn.
func TestWhoeverLeavesHasLeft(t *testing.T) {
	for name, end := range map[string]func(leave context.CancelFunc, p *process) error{
		"cancelled": func(leave context.CancelFunc, _ *process) error { leave(); return context.Canceled },
		"the limit": func(context.CancelFunc, *process) error { time.Sleep(time.Minute); return lockfx.ErrTimeout },
		"disposed": func(_ context.CancelFunc, p *process) error {
			go func() { _ = p.Dispose(background) }()
			return lockfx.ErrDisposed
		},
	} {
		for _, place := range []string{"head", "line"} {
			t.Run(name+" at the "+place, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					store := newSpy()
					release := newProcess(t, store).hold(t)
					defer release()
					p := newProcess(t, store)
					ctx, leave := context.WithCancel(background)
					defer leave()
					stays, goes := background, ctx
					if place == "head" {
						stays, goes = ctx, background
					}
					first := spawn(func() error { return p.run(stays, limitFor(place == "head"), nothing) })
					second := spawn(func() error { return p.run(goes, limitFor(place == "line"), nothing) })
					leaver, stayer := first, second
					if place == "line" {
						leaver, stayer = second, first
					}
					waits(t, leaver)
					want := end(leave, p)
					wantNow(t, leaver, want, lockfx.ErrNotAcquired)
					if want == lockfx.ErrDisposed { //nolint:errorlint // made for this comparison
						wantNow(t, stayer, lockfx.ErrDisposed)
						if n := store.watching(); n != 0 {
							t.Errorf("%d watches are left", n)
						}
						return
					}
					waits(t, stayer)
					if n := store.watching(); n != 1 {
						t.Errorf("%d watches, want that of the one who stays", n)
					}
					release()
					wantNow(t, stayer)
					if n := store.watching(); n != 0 || !p.line.Idle() {
						t.Errorf("%d watches are left; the queue is idle: %v", n, p.line.Idle())
					}
				})
			})
		}
	}
}

// limitFor is a limit that ends, or none.
func limitFor(ends bool) time.Duration {
	if ends {
		return time.Minute
	}
	return queue.Forever
}

func TestEveryWayOutOfABodyGivesTheTurnAway(t *testing.T) {
	failure := errors.New("failure")
	for name, body := range map[string]func() error{
		"a return": func() error { return nil },
		"an error": func() error { return failure },
		"a panic":  func() error { panic(failure) },
		"an exit":  func() error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newSpy()
				release := newProcess(t, store).hold(t)
				p := newProcess(t, store)
				var left []string
				gated := queue.Request{Machine: p.Machine, Limit: queue.Forever, Gate: func(context.Context, time.Duration) (func() error, string, error) {
					return func() error { left = append(left, "left"); return nil }, "", nil
				}}
				first := spawn(func() error {
					return p.line.Run(background, gated, func(context.Context, *lifecycle.Hold) error { return body() })
				})
				second := spawn(func() error { return p.run(background, queue.Forever, nothing) })
				release()
				e := <-first
				if wantErr := name == "an error"; errors.Is(e.err, failure) != wantErr || (e.panicked == any(failure)) != (name == "a panic") || e.exited != (name == "an exit") {
					t.Errorf("it ended with %+v", e)
				}
				wantNow(t, second)
				if len(left) != 1 || store.watching() != 0 {
					t.Errorf("the gate was left %d times, and %d watches are left", len(left), store.watching())
				}
			})
		})
	}
}

func TestAGateStandsBetweenTheLineAndTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newSpy()
		p := newProcess(t, store)
		var steps []string
		var mu sync.Mutex
		step := func(s string) { mu.Lock(); defer mu.Unlock(); steps = append(steps, s) }
		store.acquires(func(context.Context) error { step("store"); return nil })
		open := make(chan struct{})
		leaving := errors.New("could not leave")
		request := func(limit time.Duration) queue.Request {
			return queue.Request{Machine: p.Machine, Limit: limit, TTL: ttl, Gate: func(ctx context.Context, limit time.Duration) (func() error, string, error) {
				step("gate " + limit.String())
				select {
				case <-open:
				case <-ctx.Done():
				}
				return func() error { step("leave"); return leaving }, "by the gate", nil
			}}
		}
		body := func(context.Context, *lifecycle.Hold) error { step("body"); return errDown }
		first := spawn(func() error { return p.line.Run(background, request(queue.Forever), body) })
		time.Sleep(time.Second)
		second := spawn(func() error { return p.line.Run(background, request(time.Hour), body) })
		time.Sleep(time.Second)
		close(open)
		wantNow(t, first, errDown, leaving)
		wantNow(t, second, errDown, leaving)
		wantIs(t, p.line.Run(background, request(0), body), errDown, leaving)
		want := "gate 30s, store, body, leave, gate 30s, store, body, leave, gate 0s, store, body, leave"
		if got := strings.Join(steps, ", "); got != want {
			t.Errorf("steps:\n got %s\nwant %s", got, want)
		}
		synctest.Wait()
		for _, e := range p.events {
			if e.Gate != "by the gate" {
				t.Errorf("%v notes %q", e.Kind, e.Gate)
			}
		}
	})
}

// Whoever holds the gate may have lost its lease without knowing.
func TestGate_TheStoreIsAskedThoughAnotherHoldsIt(t *testing.T) {
	const hold = 10 * time.Minute
	for _, tt := range []struct {
		name    string
		limit   time.Duration
		waits   bool // at the gate
		free    bool // in the store
		asked   []time.Duration
		matches []error
	}{
		{"a try, and the key is free", 0, true, true, []time.Duration{0}, nil},
		{"a try, and the key is held", 0, true, false, []time.Duration{0}, []error{lockfx.ErrNotAcquired}},
		{"a wait, and the key is free", queue.Forever, true, true, []time.Duration{ttl}, nil},
		{"a short wait, and the key is free", time.Second, true, true, []time.Duration{time.Second / 2}, nil},
		{"a gate that does not wait", queue.Forever, false, true, []time.Duration{ttl}, nil},
		// It asks again when the lease in the way can be over.
		{"a wait, and the key is held", queue.Forever, true, false, []time.Duration{ttl, ttl + hold}, nil},
		{"a short wait, and the key is held", time.Second, true, false, []time.Duration{time.Second / 2}, []error{lockfx.ErrTimeout, lockfx.ErrNotAcquired}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newSpy()
				p := newProcess(t, store)
				began := time.Now()
				if !tt.free {
					if _, err := store.Store.Acquire(background, key, ttl+hold); err != nil {
						t.Fatal(err)
					}
				}
				err := p.line.Run(background, queue.Request{
					Machine: p.Machine, Limit: tt.limit, TTL: ttl,
					Gate: func(ctx context.Context, limit time.Duration) (func() error, string, error) {
						if limit != 0 && tt.waits {
							<-ctx.Done()
						}
						return nil, "", &lockfx.NotAcquiredError{Key: key, HeldBy: "another here"}
					},
				}, nothing)
				if tt.matches == nil && err != nil {
					t.Error(err)
				}
				wantIs(t, err, tt.matches...)
				asked := store.asked("acquire", began)
				last := asked[len(asked)-1]
				if first := asked[0]; first != tt.asked[0] || last < tt.asked[len(tt.asked)-1] || last > tt.asked[len(tt.asked)-1]+time.Second {
					t.Errorf("the store was asked after %v, want %v", asked, tt.asked)
				}
				if most := 2 + int(hold/ttl); len(asked) > most {
					t.Errorf("the store was asked %d times", len(asked))
				}
				for _, e := range p.events {
					if e.Kind == lockfx.EventAcquired && !strings.Contains(e.Gate, "not passed: ") {
						t.Errorf("the event says %q of the gate", e.Gate)
					}
				}
				if !p.line.Idle() {
					t.Error("it is still in the queue")
				}
			})
		})
	}
}

func TestGate_ItsFailureEndsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newSpy()
		p := newProcess(t, store)
		began := time.Now()
		request := queue.Request{Machine: p.Machine, TTL: ttl, Gate: func(context.Context, time.Duration) (func() error, string, error) {
			return nil, "", errDown
		}}
		for _, request.Limit = range []time.Duration{0, time.Minute, queue.Forever} {
			if err := p.line.Run(background, request, nothing); err != errDown { //nolint:errorlint // it comes back as it is
				t.Errorf("err = %v", err)
			}
		}
		if n := len(store.asked("acquire", began)); n != 0 || !p.line.Idle() || time.Since(began) != 0 {
			t.Errorf("after %v the store was asked %d times; the queue is idle: %v", time.Since(began), n, p.line.Idle())
		}
	})
}

func TestGate_WaitingEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t, newSpy())
		held := &lockfx.NotAcquiredError{Key: key, HeldBy: "another here"}
		for _, waits := range []bool{true, false} {
			ctx, cancel := context.WithCancelCause(background)
			waiter := spawn(func() error {
				return p.line.Run(ctx, queue.Request{
					Machine: p.Machine, Limit: queue.Forever, TTL: ttl,
					Gate: func(ctx context.Context, _ time.Duration) (func() error, string, error) {
						if waits {
							<-ctx.Done()
						}
						return nil, "", held
					},
				}, nothing)
			})
			time.Sleep(time.Second)
			cancel(errDown)
			wantNow(t, waiter, context.Canceled, errDown, held)
		}
	})
}
