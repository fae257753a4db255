package memstore_test

import (
	"context"
	"fmt"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/memstore"
)

func Example() {
	now := time.UnixMicro(1_000_000)
	store := memstore.New(memstore.WithNow(func() time.Time { return now }))

	alice := lockfx.WithLabel(context.Background(), "alice")
	grant, err := store.Acquire(alice, "nightly", 30*time.Second)
	fmt.Println("alice:", grant.OK, grant.Token, err)

	now = now.Add(10 * time.Second)
	bob := lockfx.WithLabel(context.Background(), "bob")
	refusal, err := store.Acquire(bob, "nightly", 30*time.Second)
	fmt.Println("bob:", refusal.OK, "held by", refusal.HeldBy, "for", refusal.RetryAfter, err)

	now = now.Add(refusal.RetryAfter) // alice is asleep
	next, err := store.Acquire(bob, "nightly", 30*time.Second)
	fmt.Println("bob:", next.OK, next.Token, err)

	released, err := store.Release(alice, "nightly", grant.Token)
	fmt.Println("alice releases too late:", released, err)

	// Output:
	// alice: true 1000000 <nil>
	// bob: false held by alice for 20s <nil>
	// bob: true 31000000 <nil>
	// alice releases too late: false <nil>
}

func ExampleStore_Watch() {
	store, ctx := memstore.New(), context.Background()
	grant, err := store.Acquire(ctx, "nightly", time.Minute)
	fmt.Println("held:", grant.OK, err)

	freed, stop, err := store.Watch(ctx, "nightly")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()
	refusal, err := store.Acquire(ctx, "nightly", time.Minute) // it may have been freed before Watch
	fmt.Println("waits:", !refusal.OK, err)

	if _, err := store.Release(ctx, "nightly", grant.Token); err != nil {
		fmt.Println(err)
	}
	select {
	case <-freed:
		fmt.Println("may be free")
	case <-time.After(refusal.RetryAfter):
		fmt.Println("has expired")
	}

	// Output:
	// held: true <nil>
	// waits: true <nil>
	// may be free
}
