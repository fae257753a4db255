package main

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// At whatever moment a story of seven seconds is cut short, it ends at once, its
// lease is free, and nothing runs on: the bubble would not end otherwise.
func TestInterruptedStory(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	moments := []time.Duration{0, storyTTL, defaultPace}
	for len(moments) < 40 {
		moments = append(moments, time.Duration(random.Int64N(int64(6500*time.Millisecond))))
	}
	for _, moment := range moments {
		t.Run(moment.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), moment)
				defer cancel()
				begun := time.Now()
				got := runProgram(ctx, t, memory(), "-out", t.TempDir())
				if took := time.Since(begun) - moment; took != 0 {
					t.Errorf("it went on for %v", took)
				}
				wantInterrupted(t, got)
			})
		})
	}
}

// The same against the real clock, so that the cut falls between any two
// instructions: most often while replicas start or read.
func TestInterruptedStoryInRealTime(t *testing.T) {
	for range 30 {
		moment := rand.N(150 * time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), moment)
		got := runProgram(ctx, t, memory(), "-pace", "20ms", "-out", t.TempDir())
		cancel()
		wantInterrupted(t, got)
		if t.Failed() {
			t.Fatalf("after %v", moment)
		}
	}
}

func wantInterrupted(t *testing.T, got result) {
	t.Helper()
	if got.code != exitInterrupted || got.stderr != "" {
		t.Errorf("exit code %d, stderr %q", got.code, got.stderr)
	}
	if !strings.HasSuffix(got.stdout, "  the store  says that the lease is free\n") {
		t.Errorf("the end does not say that the lease is free:\n%s", got.stdout)
	}
	granted := strings.Count(got.stdout, "holds the lease, with fencing token")
	ended := strings.Count(got.stdout, "has released its lease") + strings.Count(got.stdout, "has lost its lease")
	if granted != ended {
		t.Errorf("%d leases were granted, %d ended:\n%s", granted, ended, got.stdout)
	}
	started := strings.Count(got.stdout, "has disposed of its lock")
	if stopped := strings.Count(got.stdout, "has stopped"); stopped != started {
		t.Errorf("%d locks were disposed of, %d replicas stopped:\n%s", started, stopped, got.stdout)
	}
}
