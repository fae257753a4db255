package queue

import (
	"context"
	"math/rand/v2"
	"time"
)

// The bounds of how often a waiter looks, which is to ask the store, whatever the store
// says of time and however its watches behave.
const (
	// minPause and maxPause bound the pauses where nothing wakes: between polls, after an
	// outage, and after the loss of a watch. Signals may wake sooner, up to a point.
	minPause = 50 * time.Millisecond
	maxPause = time.Second

	// longestSleep is how long a waiter relies on its watch and on RetryAfter, less up to a
	// quarter of it. A watch may be deaf, and a clock that was wrong for a second makes any
	// lease look long. With a minute, 50 waiting processes ask once a second in all.
	longestSleep = time.Minute

	// early is how many looks may come before their time: in the long run a waiter looks once
	// in minPause. A key that changes hands quickly wakes all who wait, and all but one in
	// vain. Among 50 processes nearly every one has its turn before 500 looks.
	early = 500

	// watchWithin bounds an attempt to watch: nothing is asked meanwhile.
	watchWithin = 5 * time.Second

	// jitter keeps those who wait for the end of one lease from coming all at once.
	jitter = minPause / 10
)

// untilNext returns how long to wait at most when a lease is in the way that can
// last for left, if the store knows.
func (w *waiter) untilNext(left time.Duration) time.Duration {
	watched := w.freed != nil
	expiry := min(max(left, 2*jitter), longestSleep) + rand.N(jitter)
	switch {
	case left <= 0 && watched:
		return Jittered(maxPause)
	case left <= 0:
		return Jittered(maxPause / 2)
	case !watched:
		return min(expiry, Jittered(maxPause))
	case left > longestSleep:
		return longestSleep - rand.N(longestSleep/4)
	}
	return expiry // woken before, unless the lease ends by itself
}

// pace waits until the next look may come, and reports whether the waiting goes on. Signals
// from before that look say nothing more than it will.
func (w *waiter) pace(wait context.Context) bool {
	now := time.Now()
	if w.next.Before(now) {
		w.next = now
	}
	w.next = w.next.Add(minPause)
	if !rest(wait, w.next.Sub(now)-early*minPause) {
		return false
	}
	select {
	case <-w.freed:
	default:
	}
	return true
}

// rest waits for d, and reports whether the waiting goes on.
func rest(wait context.Context, d time.Duration) bool {
	if d <= 0 {
		return wait.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-wait.Done():
		return false
	case <-timer.C:
		return true
	}
}

// backOff counts one more fault and returns how long to wait after it.
func backOff(faults *int) time.Duration {
	d := min(minPause<<min(*faults, 10), maxPause)
	*faults++
	return Jittered(d)
}

// Jittered returns d, a quarter more or less.
func Jittered(d time.Duration) time.Duration { return d - d/4 + rand.N(d/2) }
