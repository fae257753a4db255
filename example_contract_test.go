package lockfx_test

import (
	"context"
	"fmt"
	"time"

	"github.com/lockfx/lockfx"
)

// The numbers of states and reasons are part of the contract.
func Example_states() {
	for _, s := range []lockfx.State{
		lockfx.StateIdle, lockfx.StateAcquiring, lockfx.StateHeld, lockfx.StateReleasing, lockfx.StateReleased, lockfx.StateLost,
	} {
		fmt.Printf("%d %v\n", s, s)
	}
	// Output:
	// 0 idle
	// 1 acquiring
	// 2 held
	// 3 releasing
	// 4 released
	// 5 lost
}

func Example_reasons() {
	for _, r := range []lockfx.Reason{
		lockfx.ReasonNone, lockfx.ReasonReleased, lockfx.ReasonHeartbeatFailed, lockfx.ReasonStoreError,
		lockfx.ReasonFenceRegressed, lockfx.ReasonDisposed, lockfx.ReasonTimerUnarmable, lockfx.ReasonExpired, lockfx.ReasonMaxHold,
	} {
		fmt.Printf("%d %v\n", r, r)
	}
	// Output:
	// 0 none
	// 1 released
	// 2 heartbeat failed
	// 3 store error
	// 4 fence regressed
	// 5 disposed
	// 6 timer unarmable
	// 7 expired
	// 8 max hold
}

func ExampleEvent() {
	for _, k := range []lockfx.EventKind{
		lockfx.EventAcquired, lockfx.EventRefused, lockfx.EventFailed, lockfx.EventRenewFailed,
		lockfx.EventLost, lockfx.EventReleased, lockfx.EventDisposed, lockfx.EventCallbackPanicked,
	} {
		fmt.Println(lockfx.Event{Kind: k, Lock: "nightly"})
	}
	fmt.Println(lockfx.Event{Kind: lockfx.EventLost, Lock: "nightly", Token: 7, Reason: lockfx.ReasonExpired})
	// Output:
	// "nightly" acquired
	// "nightly" refused
	// "nightly" failed
	// "nightly" renew failed
	// "nightly" lost
	// "nightly" released
	// "nightly" disposed
	// "nightly" callback panicked
	// "nightly" lost (token 7): expired
}

// A token travels with the context of its run, down to whatever writes.
func ExampleTokenFrom() {
	write := func(ctx context.Context) {
		fence := lockfx.TokenFrom(ctx)
		fmt.Println(fence, fence.Valid())
	}
	write(lockfx.WithToken(context.Background(), "nightly", lockfx.Token(1764547200000001)))
	write(context.Background()) // no run: nothing may be written
	// Output:
	// 1764547200000001 true
	// 0 false
}

// In a run inside another lock's run, a resource asks for the token of the lock that
// guards it.
func ExampleTokenFor() {
	ctx := lockfx.WithToken(context.Background(), "nightly", 7)
	ctx = lockfx.WithToken(ctx, "migrations", 1200)
	fmt.Println(lockfx.TokenFor(ctx, "nightly"), lockfx.TokenFor(ctx, "migrations"), lockfx.TokenFrom(ctx))
	// Output: 7 1200 1200
}

// A label is what those who are refused are told of the holder.
func ExampleWithLabel() {
	ctx := lockfx.WithLabel(context.Background(), "web-1/4711/nightly")
	fmt.Println(lockfx.LabelFrom(ctx))
	// Output: web-1/4711/nightly
}

func ExampleCheckKey() {
	fmt.Println(lockfx.MaxKeyLen, "bytes are the most")
	fmt.Println(lockfx.CheckKey("reports/ночь"))
	fmt.Println(lockfx.CheckKey("a\x00b"))
	// Output:
	// 512 bytes are the most
	// <nil>
	// invalid configuration: key "a\x00b" must not contain NUL
}

// A store refuses a ttl that its engine would round to nothing.
func ExampleCheckTTL() {
	fmt.Println(lockfx.CheckTTL(30*time.Second, time.Second))
	fmt.Println(lockfx.CheckTTL(time.Millisecond, time.Second))
	// Output:
	// <nil>
	// invalid configuration: ttl 1ms is below the store's resolution of 1s
}

func ExampleSystemClock() {
	after := func(clock lockfx.Clock, d time.Duration, f func()) lockfx.Timer {
		fmt.Println("the clock runs:", !clock.Now().IsZero())
		return clock.AfterFunc(d, f)
	}
	fired := make(chan struct{})
	timer := after(lockfx.SystemClock(), 0, func() { close(fired) })
	<-fired
	fmt.Println("stopped before it fired:", timer.Stop())
	// Output:
	// the clock runs: true
	// stopped before it fired: false
}

func Example_version() {
	fmt.Println(lockfx.Version != "")
	// Output: true
}
