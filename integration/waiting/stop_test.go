package queue_test

import (
	"slices"
	"testing"
	"time"

	"github.com/lockfx/lockfx"
)

// handOffs returns how long it took in each round until the next one holds the lock:
// between two bare stores, from the begin of a release on, and between two
// applications of which the first, which leads, is told to stop. The rounds of both
// take turns, so that a busy moment of the machine hits both. In both, who lets go has
// waited for the lock in the round before, with the same client. The applications use
// what stores makes of their stores.
func handOffs(t *testing.T, e *engine, rounds int, stores func(store) store) (bare, led []time.Duration) {
	t.Helper()
	contenders := [2]store{e.opened(t), e.opened(t)}
	replicas := [2]store{stores(e.opened(t)), stores(e.opened(t))}
	key := t.Name() + " bare"
	token := take(t, contenders[0], key, leaseTime)
	leading := newMember(t, replicas[0])
	leading.start(t)
	last := next(t, leading.elected)
	for i := range rounds {
		var took time.Duration
		took, token = bareHandOff(t, contenders[i%2], contenders[1-i%2], key, token)
		bare = append(bare, took)

		following := newMember(t, replicas[1-i%2])
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
	free(t, contenders[rounds%2], key, token)
	return bare, led
}

func asTheyAre(s store) store { return s }

// member is an application that campaigns.
type member struct {
	*observed
	start, stop func(*testing.T)
	elected     chan election
}

func newMember(t *testing.T, s store) *member {
	t.Helper()
	m := &member{observed: observe(s), elected: make(chan election, 1)}
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
	}
	return m
}

// bareHandOff lets the waiter take over from the holder, and returns its token.
func bareHandOff(t *testing.T, holder, waiter store, key string, token lockfx.Token) (time.Duration, lockfx.Token) {
	t.Helper()
	refused := func() {
		t.Helper()
		if g, err := waiter.Acquire(t.Context(), key, leaseTime); g.OK || err != nil {
			t.Fatalf("the waiter: %+v, %v; want a refusal", g, err)
		}
	}
	refused()
	freed, stop, err := waiter.Watch(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	refused()
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
	return a.at.Sub(begin), a.Token
}

func median(took []time.Duration) time.Duration {
	return slices.Sorted(slices.Values(took))[len(took)/2]
}

// Nobody waits for a lease to end, which would take minutes.
func TestALeaderThatStopsHandsOver(t *testing.T) {
	overEach(t, func(t *testing.T, e *engine) {
		bare, led := handOffs(t, e, 5, asTheyAre)
		t.Logf("a stop %v, a bare hand-off %v", median(led), median(bare))
		if slices.Max(led) >= leaseTime/2 {
			t.Errorf("a successor leads after %v", slices.Max(led))
		}
	})
}
