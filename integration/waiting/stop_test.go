package waiting_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/lockfx/lockfx"
)

// handOffs returns how long it took in each round until the next one holds the lock:
// between two bare stores, from the begin of a release on, and between two
// applications of which the first, which leads, is told to stop. The rounds of both
// take turns, so that a busy moment of the machine hits both.
func handOffs(t *testing.T, e *engine, rounds int) (bare, led []time.Duration) {
	t.Helper()
	holder, waiter := e.opened(t), e.opened(t)
	leading := newMember(t, e)
	leading.start(t)
	last := next(t, leading.elected)
	for range rounds {
		bare = append(bare, bareHandOff(t, holder, waiter))

		following := newMember(t, e)
		following.start(t)
		if err := following.awaitLine(t.Context()); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		leading.stop(t)
		won := next(t, following.elected)
		led = append(led, won.at.Sub(begin))
		if won.token <= last.token {
			t.Errorf("token %v after %v", won.token, last.token)
		}
		leading, last = following, won
	}
	leading.stop(t)
	return bare, led
}

// member is an application that campaigns, with a client of its own.
type member struct {
	*observed
	start, stop func(*testing.T)
	elected     chan election
}

func newMember(t *testing.T, e *engine) *member {
	t.Helper()
	p, err := e.place().open(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	m := &member{observed: observe(p), elected: make(chan election, 1)}
	app := application(campaign(t.Name(), leaseTime, m.observed, m.elected))
	m.start = func(t *testing.T) {
		t.Helper()
		if err := app.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	m.stop = func(t *testing.T) {
		t.Helper()
		if err := app.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := p.close(); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// bareHandOff measures one between two stores, and frees the key.
func bareHandOff(t *testing.T, holder, waiter store) time.Duration {
	t.Helper()
	key := t.Name() + " bare"
	token := take(t, holder, key, leaseTime)
	freed, stop, err := waiter.Watch(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if g, err := waiter.Acquire(t.Context(), key, leaseTime); g.OK || err != nil {
		t.Fatalf("the waiter: %+v, %v; want a refusal", g, err)
	}
	type answer struct {
		lockfx.Grant
		err error
		at  time.Time
	}
	won := make(chan answer)
	go func() {
		var a answer
		for !a.OK && a.err == nil {
			<-freed
			a.Grant, a.err = waiter.Acquire(t.Context(), key, leaseTime)
			a.at = time.Now()
		}
		won <- a
	}()
	begin := time.Now()
	free(t, holder, key, token)
	a := <-won
	if a.err != nil {
		t.Fatal(a.err)
	}
	free(t, waiter, key, a.Token)
	return a.at.Sub(begin)
}

func median(took []time.Duration) time.Duration {
	return slices.Sorted(slices.Values(took))[len(took)/2]
}

// Nobody waits for a lease to end, which would take minutes.
func TestALeaderThatStopsHandsOver(t *testing.T) {
	overEach(t, func(t *testing.T, e *engine) {
		bare, led := handOffs(t, e, 5)
		t.Logf("a stop %v, a bare hand-off %v", median(led), median(bare))
		if slices.Max(led) >= leaseTime/2 {
			t.Errorf("a successor leads after %v", slices.Max(led))
		}
	})
}
