package lockfx_test

import (
	"context"
	"fmt"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

// A store grants leases. Nobody but applications' tests talks to one by hand; a
// lock does.
func ExampleStore() {
	ctx := lockfx.WithLabel(context.Background(), "first")
	var store lockfx.Store = fxlock.NewMemoryStore()

	first, _ := store.Acquire(ctx, "nightly", time.Minute)
	second, _ := store.Acquire(ctx, "nightly", time.Minute) // every acquisition is its own owner
	fmt.Println(first.OK, first.Token.Valid(), second.OK, second.HeldBy)

	renewed, _ := store.Renew(ctx, "nightly", first.Token, time.Minute)
	foreign, _ := store.Renew(ctx, "nightly", first.Token+1, time.Minute)
	released, _ := store.Release(ctx, "nightly", first.Token)
	late, _ := store.Release(ctx, "nightly", first.Token)
	fmt.Println(renewed, foreign, released, late)

	next, _ := store.Acquire(ctx, "nightly", time.Minute)
	fmt.Println(next.Token > first.Token)
	// Output:
	// true true false first
	// true false true false
	// true
}

// A refusal is the zero Grant, as far as it is known with who is in the way; an
// outage is an error.
func ExampleGrant() {
	refusal := lockfx.Grant{HeldBy: "web-1", RetryAfter: 20 * time.Second}
	fmt.Println(refusal.OK, refusal.Token, refusal.HeldBy, refusal.RetryAfter)
	// Output: false 0 web-1 20s
}

// A Watcher wakes those who wait. They try again after they began to watch, since
// the key may have become free in between.
func ExampleWatcher() {
	ctx := context.Background()
	var store lockfx.Store = fxlock.NewMemoryStore()
	holder, _ := store.Acquire(ctx, "nightly", time.Minute)

	watcher, ok := store.(lockfx.Watcher)
	if !ok {
		return // poll, and try again after Grant.RetryAfter
	}
	freed, stop, err := watcher.Watch(ctx, "nightly")
	if err != nil {
		return
	}
	defer stop()
	_, _ = store.Release(ctx, "nightly", holder.Token)
	<-freed
	next, _ := store.Acquire(ctx, "nightly", time.Minute)
	fmt.Println(next.OK)
	// Output: true
}

// Operators look at a lease, and free it by force.
func ExampleInspector() {
	ctx := lockfx.WithLabel(context.Background(), "web-1")
	var store lockfx.Store = fxlock.NewMemoryStore()
	grant, _ := store.Acquire(ctx, "nightly", time.Minute)

	var lease lockfx.Lease
	lease, _ = store.(lockfx.Inspector).Inspect(ctx, "nightly")
	fmt.Println(lease.Token == grant.Token, lease.Label, lease.TimeLeft > 0)

	broken, _ := store.(lockfx.Breaker).Break(ctx, "nightly")
	held, _ := store.Renew(ctx, "nightly", grant.Token, time.Minute)
	fmt.Println(broken, held)
	// Output:
	// true web-1 true
	// true false
}

// batching is a store that renews many leases at once, and ends what it opened.
type batching struct{ lockfx.Store }

var (
	_ lockfx.ManyRenewer = batching{}
	_ lockfx.Closer      = batching{}
)

func (s batching) RenewMany(ctx context.Context, renewals []lockfx.Renewal) []lockfx.Result {
	results := make([]lockfx.Result, len(renewals)) // in the same order
	for i, r := range renewals {
		results[i].OK, results[i].Err = s.Renew(ctx, r.Key, r.Token, r.TTL)
	}
	return results
}

func (batching) Close(context.Context) error { return nil }

func ExampleManyRenewer() {
	ctx := context.Background()
	store := batching{fxlock.NewMemoryStore()}
	grant, _ := store.Acquire(ctx, "nightly", time.Minute)
	for _, r := range store.RenewMany(ctx, []lockfx.Renewal{
		{Key: "nightly", Token: grant.Token, TTL: time.Minute},
		{Key: "migrations", Token: grant.Token, TTL: time.Minute},
	}) {
		fmt.Println(r.OK, r.Err)
	}
	fmt.Println(store.Close(ctx))
	// Output:
	// true <nil>
	// false <nil>
	// <nil>
}
