package polldir

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Processes that take the lock again the moment they have given it back leave the others
// no time to look, unless they stand back now and then.
func TestLock_EveryProcessGetsItsTurn(t *testing.T) {
	for _, hold := range []time.Duration{2 * time.Millisecond, 50 * time.Millisecond, time.Second} {
		path := lockPath(t)
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), max(200*hold, 20*time.Second))
			defer cancel()
			var processes sync.WaitGroup
			for range 4 {
				processes.Go(func() {
					var grants int
					var longest time.Duration
					for d := new(Dirs); ctx.Err() == nil; {
						asked := time.Now()
						l, err := d.Lock(ctx, path, stale, unexpected(t))
						longest = max(longest, time.Since(asked))
						if err != nil {
							break
						}
						grants++
						time.Sleep(hold)
						must(t, l.Unlock())
					}
					if longest > 10*time.Second+20*hold {
						t.Errorf("holds of %v: a process had %d, and waited for %v", hold, grants, longest)
					}
				})
			}
			processes.Wait()
		})
	}
}

// Nobody has to wait where nobody else can be in the way.
func TestTryLock_IsNotHeldUpByTurns(t *testing.T) {
	path := lockPath(t)
	synctest.Test(t, func(t *testing.T) {
		d, began := new(Dirs), time.Now()
		for time.Since(began) < time.Minute {
			l := mustTry(t, d, path, unexpected(t))
			time.Sleep(20 * time.Millisecond)
			must(t, l.Unlock())
		}
		if over := time.Since(began) - time.Minute; over != 0 {
			t.Errorf("it slept for %v", over)
		}
	})
}
