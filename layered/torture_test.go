//go:build torture && unix

package layered

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestGateLayeredProcesses(t *testing.T) {
	const processes, holds = 8, 500
	for name, scope := range processScopes {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			visits, byMark, byLog := runHammers(t, processes, role{Scope: scope, Holds: holds})
			if visits != processes*holds || byMark != 0 || byLog != 0 {
				t.Errorf("%d visits, %d and %d overlaps", visits, byMark, byLog)
			}
			t.Logf("%d visits in %v", visits, time.Since(start).Round(time.Millisecond))
		})
	}
	visits, byMark, byLog := plantUnlink(t)
	t.Logf("GATE layered-processes: %d processes x %d holds in each of %d scopes, 0 overlaps by two detectors; planted unlink after release: %d and %d overlaps in %d holds",
		processes, holds, len(processScopes), byMark, byLog, visits)
}

func TestGateLayeredKill(t *testing.T) {
	const kills = 200
	atOnce := followKilled(t, kills, 1, role{Scope: processScopes["flock"]})
	if p50 := median(atOnce); p50 > 50*time.Millisecond {
		t.Errorf("flock: the next holder had to wait for p50 %v", p50)
	}
	// A call that broke a lock makes sure of its own before it goes on.
	const stale, allowed = 2 * time.Second, 100 * time.Millisecond
	byStale := followKilled(t, kills, 25, role{Scope: processScopes["poll"], Stale: stale})
	if p50 := median(byStale); p50 > stale+allowed {
		t.Errorf("poll: the next holder had to wait for p50 %v", p50)
	}
	t.Logf("GATE layered-kill: kill -9 of %d holders; next holder after p50 %v, max %v by flock; p50 %v, max %v by poll with stale %v",
		kills, median(atOnce), atOnce[kills-1], median(byStale), byStale[kills-1], stale)
}

// followKilled kills holders, so many at once, and returns, sorted, how long the next
// holder, who was waiting, took from the kill to its hold.
func followKilled(t *testing.T, kills, atOnce int, r role) []time.Duration {
	t.Helper()
	r.Do = "hold"
	took := make([]time.Duration, kills)
	var wg sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i := range kills {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			r := r
			r.Dir = t.TempDir()
			a := start(t, r)
			a.expect("held")
			locker, err := New() // all use one key, in directories of their own
			if err != nil {
				t.Error(err)
				return
			}
			killed := make(chan time.Time, 1)
			go func() {
				if r.Scope.Flock == On {
					eventually(t, "the next holder waits", func() bool { return files.Parked() > 0 })
				}
				killed <- time.Now()
				a.kill()
			}()
			_, err = WithLock(t.Context(), 0, func(context.Context, Call[int]) (int, error) {
				took[i] = time.Since(<-killed)
				return 0, nil
			}, append(r.options(), WithLocker(locker))...)
			acquired(t, err)
		})
	}
	wg.Wait()
	files.CloseIdle()
	slices.Sort(took)
	return took
}

func median(sorted []time.Duration) time.Duration { return sorted[len(sorted)/2] }

func TestGateLayeredPause(t *testing.T) {
	const pauses = 20
	t.Run("holders", func(t *testing.T) {
		for i := range pauses {
			t.Run(strconv.Itoa(i), func(t *testing.T) {
				t.Parallel()
				pauseAndTakeOver(t)
			})
		}
	})
	t.Logf("GATE layered-pause: SIGSTOP of %d holders for longer than the stale time: each learned of its loss and left the next holder alone", pauses)
}

// One process waits while the other holds, and they change places.
func TestGateLayeredHandOff(t *testing.T) {
	const rounds = 200
	r := role{Do: "hold", Dir: t.TempDir(), Scope: processScopes["flock"]}
	took := make([]time.Duration, 0, rounds)
	for range rounds {
		a := start(t, r)
		a.expect("held")
		go func() {
			eventually(t, "the next holder waits", func() bool { return files.Parked() > 0 })
			a.tell()
		}()
		var got time.Time
		_, err := WithLock(t.Context(), 0, func(context.Context, Call[int]) (int, error) {
			got = time.Now()
			return 0, nil
		}, r.options()...)
		must(t, err)
		_, text, _ := strings.Cut(a.expect("releasing "), " ")
		released, err := strconv.ParseInt(text, 10, 64)
		must(t, err)
		took = append(took, got.Sub(time.Unix(0, released)))
		a.wait()
	}
	files.CloseIdle()
	slices.Sort(took)
	if p50 := median(took); p50 > time.Millisecond {
		t.Errorf("p50 %v, at most 1ms is allowed", p50)
	}
	t.Logf("GATE layered-handoff: between processes by flock p50 %v, p99 %v over %d", median(took), took[rounds*99/100], rounds)
}

// Each process asks again the moment it has given the lock back.
func TestGateLayeredTurns(t *testing.T) {
	const processes, lasts, hold, allowed = 4, 20 * time.Second, 50 * time.Millisecond, 6 * time.Second
	for _, name := range []string{"flock", "poll"} {
		r := role{Do: "take turns", Dir: t.TempDir(), Scope: processScopes[name], Hold: hold, Lasts: lasts}
		var actors []*actor
		for range processes {
			actors = append(actors, start(t, r))
		}
		var longest time.Duration
		var holds []string
		for _, a := range actors {
			n, text, _ := strings.Cut(a.expect(""), " ")
			waited, err := time.ParseDuration(text)
			must(t, err)
			longest, holds = max(longest, waited), append(holds, n)
			a.wait()
		}
		if longest > allowed {
			t.Errorf("%s: a process had to wait for %v, at most %v is allowed", name, longest, allowed)
		}
		t.Logf("GATE layered-turns: %s: %d processes in %v, holds of %v: %s holds, the longest wait %v",
			name, processes, lasts, hold, strings.Join(holds, ", "), longest)
	}
}

func init() {
	roles["take turns"] = func(r role) error {
		ctx, cancel := context.WithTimeout(context.Background(), r.Lasts)
		defer cancel()
		var longest time.Duration
		n := 0
		for ctx.Err() == nil {
			asked := time.Now()
			_, _ = WithLock(ctx, 0, func(context.Context, Call[int]) (int, error) {
				n++
				longest = max(longest, time.Since(asked))
				time.Sleep(r.Hold)
				return 0, nil
			}, r.options()...)
		}
		_, err := fmt.Println(n, longest)
		return err
	}
}
