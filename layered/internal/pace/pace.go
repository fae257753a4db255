// Package pace says how often those look who wait for what nobody tells them of, and
// when a process leaves what it could have again to those who look.
package pace

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

const (
	// first and longest bound the time from one look to the next, before jitter.
	first   = 5 * time.Millisecond
	longest = 15 * time.Millisecond
	// each is what every one of many who look adds to that: together they look no more
	// often than this, however many they are.
	each = 500 * time.Microsecond
)

// Look is the longest time between two looks, unless many look at once.
const Look = longest * 3 / 2

// Looks paces all who look, in one process. The zero Looks is ready. It is safe for
// concurrent use.
type Looks struct{ n atomic.Int64 }

// Waiter is one that looks. End must be called.
type Waiter struct {
	looks *Looks
	next  time.Duration
}

// Begin returns one that has looked for the first time.
func (l *Looks) Begin() *Waiter {
	l.n.Add(1)
	return &Waiter{l, first}
}

// End says that w looks no more.
func (w *Waiter) End() { w.looks.n.Add(-1) }

// Sleep waits until the next look is due, but for atMost at most. It returns the cause
// of ctx's end if that came first.
func (w *Waiter) Sleep(ctx context.Context, atMost time.Duration) error {
	d := max(w.next, time.Duration(w.looks.n.Load())*each)
	w.next = min(2*w.next, longest)
	return Sleep(ctx, min(d/2+rand.N(d), atMost)) // half more or less, so that nobody looks in step
}

// Sleep waits for d. It returns the cause of ctx's end if that came first.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
