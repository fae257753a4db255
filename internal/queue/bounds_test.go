package queue_test

import (
	"context"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/queue"
)

// ready is a channel that has a signal each time somebody looks, until done.
func ready(done context.Context) <-chan struct{} {
	freed := make(chan struct{})
	go func() {
		for {
			select {
			case freed <- struct{}{}:
			case <-done.Done():
				return
			}
		}
	}()
	return freed
}

func deafWatch(context.Context) <-chan struct{} { return make(chan struct{}) }

func closedWatch(context.Context) <-chan struct{} {
	freed := make(chan struct{})
	close(freed)
	return freed
}

// signalsAndCloses signals once, and is then lost.
func signalsAndCloses(context.Context) <-chan struct{} {
	freed := make(chan struct{}, 1)
	freed <- struct{}{}
	close(freed)
	return freed
}

// Whatever a store says of time, and however its watches behave: within an hour a waiter
// asks seldom enough to harm nobody, and often enough to come to its turn.
func TestWait_AsksNeitherTooOftenNorTooSeldom(t *testing.T) {
	down := func(context.Context, string, time.Duration) (lockfx.Grant, error) { return lockfx.Grant{}, errDown }
	left := func(d time.Duration) func(context.Context, string, time.Duration) (lockfx.Grant, error) {
		return func(context.Context, string, time.Duration) (lockfx.Grant, error) {
			return lockfx.Grant{RetryAfter: d}, nil
		}
	}
	const (
		seldom = 80          // once in 45 s
		polled = 9600        // twice in 0.75 s
		paced  = 72000 + 510 // twenty times a second, and 500 times at once
	)
	for name, tt := range map[string]struct {
		watch   func(context.Context) <-chan struct{} // nil: it can't be watched
		acquire func(context.Context, string, time.Duration) (lockfx.Grant, error)
		most    int
		longest time.Duration
	}{
		"a watch that always signals":               {ready, left(time.Hour), paced, time.Second},
		"one that always signals, and an outage":    {ready, down, paced, longestPoll},
		"one that signals and is lost":              {signalsAndCloses, left(time.Hour), paced, longestPoll},
		"one that is lost at once":                  {closedWatch, left(time.Hour), polled, longestPoll},
		"a deaf watch and an hour to go":            {deafWatch, left(time.Hour), seldom, longestSleep},
		"a deaf watch and a lease that is not over": {deafWatch, left(ttl), 2 * seldom, ttl + afterExpiry},
		"a deaf watch and the longest duration":     {deafWatch, left(math.MaxInt64), seldom, longestSleep},
		"a deaf watch and nearly the longest":       {deafWatch, left(math.MaxInt64 - 4*time.Millisecond), seldom, longestSleep},
		"a deaf watch and the shortest duration":    {deafWatch, left(math.MinInt64), polled, longestPoll},
		"a deaf watch and a nanosecond":             {deafWatch, left(1), paced, time.Second},
		"a deaf watch and nothing said":             {deafWatch, left(0), polled, longestPoll},
		"no watch and the longest duration":         {nil, left(math.MaxInt64), polled, longestPoll},
		"no watch and a nanosecond":                 {nil, left(1), paced, time.Second},
		"no watch and a negative duration":          {nil, left(-time.Hour), polled, longestPoll},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hour, cancel := context.WithTimeout(background, time.Hour)
				defer cancel()
				began := time.Now()
				spied := newSpy()
				spied.watch = func(context.Context) (<-chan struct{}, func(), error) { return tt.watch(hour), func() {}, nil }
				counted := answers{spied.Store, func(ctx context.Context, k string, d time.Duration) (lockfx.Grant, error) {
					spied.note("acquire")
					return tt.acquire(ctx, k, d)
				}}
				store := lockfx.Store(watchedAnswers{counted, spied})
				if tt.watch == nil {
					store = counted
				}
				p := newProcess(t, store)
				wantIs(t, p.run(hour, queue.Forever, nothing), context.DeadlineExceeded)
				asked := append(spied.asked("acquire", began), time.Hour)
				if n := len(asked); n > tt.most {
					t.Errorf("it asked %d times, at most %d are allowed", n, tt.most)
				}
				var gaps []time.Duration
				for i := 1; i < len(asked); i++ {
					gaps = append(gaps, asked[i]-asked[i-1])
				}
				if gap := slices.Max(gaps); gap > tt.longest {
					t.Errorf("it did not ask for %v, at most %v are allowed", gap, tt.longest)
				}
			})
		})
	}
}

// Processes that wait in vain for a lease that is renewed, under a watch, cost little.
func TestWait_CostsLittleWhileNothingHappens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newSpy()
		foreign(t, store.Store, 24*time.Hour)
		hour, cancel := context.WithTimeout(background, time.Hour)
		defer cancel()
		const processes = 50
		var calls []<-chan ended
		for range processes {
			p := newProcess(t, store)
			calls = append(calls, spawn(func() error { return p.run(hour, queue.Forever, nothing) }))
		}
		settled := time.Now().Add(1)
		time.Sleep(time.Hour - time.Second)
		if n := len(store.asked("acquire", settled)); n > 3600 {
			t.Errorf("%d processes asked %d times within an hour", processes, n)
		}
		for _, call := range calls {
			wantIs(t, (<-call).err, context.DeadlineExceeded)
		}
	})
}
