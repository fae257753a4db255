package redisstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/storekit"
)

var errSent = errors.New("the request failed")

// Whatever requests do, each renewal gets its own answer, or hears of the end of its
// ctx when that comes, and nothing is left behind.
func TestEachRenewalGetsItsOwnAnswer(t *testing.T) {
	for seed := range uint64(50) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { shuffled(t, rand.New(rand.NewPCG(seed, 0))) })
		})
	}
}

func shuffled(t *testing.T, random *rand.Rand) {
	var mu sync.Mutex // guards random, sent
	sent := map[lockfx.Token]int{}
	chance := func(n int) int { mu.Lock(); defer mu.Unlock(); return random.IntN(n) }
	request := func(ctx context.Context) error {
		switch chance(6) {
		case 0:
			pause(ctx, time.Duration(chance(2000))*time.Millisecond) // hangs
			return ctx.Err()
		case 1:
			return errSent
		case 2:
			return nil
		}
		pause(ctx, time.Duration(chance(60_000))*time.Microsecond)
		return ctx.Err()
	}
	answer := func(token lockfx.Token, err error) lockfx.Result {
		mu.Lock()
		defer mu.Unlock()
		sent[token]++
		return lockfx.Result{OK: err == nil && token%2 == 0, Err: err}
	}
	g := &gatherer{tasks: new(storekit.Tasks)}
	g.send = func(ctx context.Context, renewals []lockfx.Renewal) []lockfx.Result {
		err := request(ctx)
		results := make([]lockfx.Result, len(renewals))
		for i, r := range renewals {
			results[i] = answer(r.Token, err)
		}
		return results
	}
	var all sync.WaitGroup
	for n := range 300 {
		time.Sleep(time.Duration(chance(3000)) * time.Microsecond * time.Duration(chance(2)))
		all.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			limit := time.Duration(1+chance(500)) * time.Millisecond
			if chance(2) == 0 {
				ctx, cancel = context.WithTimeout(t.Context(), limit)
			} else {
				defer time.AfterFunc(limit, cancel).Stop()
			}
			defer cancel()
			begun := time.Now()
			r := renewal(n)
			ok, err := g.renew(ctx, r, func() (bool, error) {
				result := answer(r.Token, request(ctx))
				return result.OK, result.Err
			})
			switch took := time.Since(begun); {
			case took > limit:
				t.Errorf("renewal %d took %v, and its ctx lasted %v", n, took, limit)
			case err == nil && ok != (n%2 == 0):
				t.Errorf("renewal %d got the answer of another", n)
			case err != nil && !errors.Is(err, errSent) && took < limit:
				t.Errorf("renewal %d: %v after %v, and its ctx lasted %v", n, err, took, limit)
			}
		})
	}
	all.Wait()
	if err := g.tasks.Wait(t.Context()); err != nil || g.timer != nil || len(g.waiting) > 0 || !g.since.IsZero() {
		t.Errorf("something is left: %v, %v, %d, %v", err, g.timer, len(g.waiting), g.since)
	}
	for token, n := range sent {
		if n != 1 {
			t.Errorf("renewal %d was sent %d times", token, n)
		}
	}
}
