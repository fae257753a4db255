package fxlock_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/fx"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

const (
	replicas    = 3
	scheduleTTL = 3 * time.Second
)

// plant is a fault that is put into schedules, so that they are seen to find it.
type plant int

const (
	nothing     plant = iota
	noDeadline        // a replica takes itself for the leader without looking at the local deadline
	eventsAlone       // a replica takes itself for the leader from LeadershipElected to LeadershipEnded
	badQuartz         // a replica's clock is slower than the margin allows for
)

// schedule is some minutes in the life of replicas that campaign, while their ways
// to the store are cut, their processes are paused, and they are stopped and started.
type schedule struct {
	random   *rand.Rand
	store    *fxlock.MemoryStore
	replicas []*replica

	mu     sync.Mutex // guards what follows
	tokens []lockfx.Token
	faults []string

	looks, failed, cuts, stalls, stops atomic.Int64
}

// replica is a candidate with its own process and its own way to the store.
type replica struct {
	*candidate
	link   *link
	clock  *stallingClock
	leads  func() bool // what it says of itself
	busy   sync.WaitGroup
	random *rand.Rand // of the terms

	holder   atomic.Pointer[lockfx.Holder] // of the last term
	inOffice atomic.Bool                   // from LeadershipElected to LeadershipEnded
}

func (s *schedule) fault(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, fmt.Sprintf(format, args...))
}

// play plays the schedule of a seed.
func play(t *testing.T, seed uint64, planted plant) *schedule {
	s := &schedule{random: rand.New(rand.NewPCG(seed, 1)), store: fxlock.NewMemoryStore()}
	inBubble(t, func(t *testing.T) {
		for i := range replicas {
			s.replicas = append(s.replicas, s.newReplica(seed, i, planted))
		}
		for _, r := range s.replicas {
			must(t, r.app.Start(t.Context()))
		}
		looking, looked := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(looked)
			for {
				select {
				case <-looking:
					return
				case <-time.After(37 * time.Millisecond):
					s.look()
				}
			}
		}()
		for range 40 {
			time.Sleep(time.Duration(s.random.Int64N(int64(scheduleTTL))))
			s.disturb(t, s.replicas[s.random.IntN(replicas)])
			s.look()
		}
		s.recover()
		close(looking)
		<-looked
		for _, r := range s.replicas {
			noError(t, r.app.Stop(t.Context()))
		}
	})
	return s
}

func (s *schedule) newReplica(seed uint64, i int, planted plant) *replica {
	rates := []float64{1, 1.004, 0.996}
	if planted == badQuartz {
		rates[2] = 0.9
	}
	r := &replica{
		link: newLink(s.store), clock: newStallingClock(rates[i]),
		random: rand.New(rand.NewPCG(seed, uint64(i)+2)),
	}
	opts := []any{fxlock.WithTTL(scheduleTTL), fxlock.WithClock(r.clock), fxlock.TermPause(time.Second), fx.NopLogger}
	if i == 0 {
		opts = append(opts, fxlock.WithRenewRetry())
	}
	r.candidate = newCandidate(r.link, func(ctx context.Context, h lockfx.Holder, token lockfx.Token) error {
		s.elected(token)
		return r.term(ctx, h)
	}, opts...)
	r.leads = r.IsLeader
	switch planted {
	case noDeadline:
		r.leads = func() bool { h := r.holder.Load(); return h != nil && (*h).State() == lockfx.StateHeld }
	case eventsAlone:
		r.leads = r.inOffice.Load
	}
	r.Subscribe(func(e fxlock.LeadershipEvent) {
		switch e.Change {
		case fxlock.LeadershipElected:
			r.inOffice.Store(true)
		case fxlock.LeadershipEnded:
			r.inOffice.Store(false)
			if e.Err != nil {
				s.failed.Add(1)
			}
		}
	})
	return r
}

// term works for a while, or until it is told to end, which it may take its time for.
func (r *replica) term(ctx context.Context, h lockfx.Holder) error {
	r.holder.Store(&h)
	works, lingers := time.Duration(r.random.Int64N(int64(20*time.Second))), time.Duration(0)
	if r.random.IntN(3) == 0 {
		lingers = time.Duration(r.random.Int64N(int64(2 * scheduleTTL)))
	}
	timer := time.NewTimer(works)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		time.Sleep(lingers)
	}
	return ctx.Err()
}

// elected is called when a term begins: its token exceeds all before it, and nobody
// else leads.
func (s *schedule) elected(token lockfx.Token) {
	s.mu.Lock()
	if n := len(s.tokens); n > 0 && token <= s.tokens[n-1] {
		s.faults = append(s.faults, fmt.Sprintf("token %v after %v", token, s.tokens[n-1]))
	}
	s.tokens = append(s.tokens, token)
	s.mu.Unlock()
	s.look()
}

// look counts those who take themselves for the leader at this instant. One may hand
// over to another between two looks, in no time at all: two lead only if the first
// still leads the same term when the second was seen.
func (s *schedule) look() (leaders int) {
	s.looks.Add(1)
	terms := map[int]lockfx.Token{}
	for i, r := range s.replicas {
		if token := r.Token(); r.leads() {
			terms[i] = token
		}
	}
	if len(terms) < 2 {
		return len(terms)
	}
	maps.DeleteFunc(terms, func(i int, token lockfx.Token) bool {
		return !s.replicas[i].leads() || s.replicas[i].Token() != token
	})
	if len(terms) > 1 {
		s.fault("at %v the replicas %v lead", time.Now().Format("04:05.000"), slices.Sorted(maps.Keys(terms)))
	}
	return len(terms)
}

// disturb does something to a replica.
func (s *schedule) disturb(t *testing.T, r *replica) {
	switch s.random.IntN(6) {
	case 0, 1:
		s.cuts.Add(1)
		r.link.set(linkState(1 + s.random.IntN(int(linkStates)-1)))
	case 2:
		r.link.set(open)
	case 3:
		s.stalls.Add(1)
		r.clock.stall(true)
	case 4:
		r.clock.stall(false)
	case 5:
		s.stops.Add(1)
		patience := time.Duration(1 + s.random.Int64N(int64(2*scheduleTTL)))
		r.busy.Wait()
		r.busy.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			_ = r.app.Stop(ctx) // it may run out of time
			for r.app.Start(t.Context()) != nil {
				time.Sleep(time.Millisecond) // the stop is still under way
			}
		})
	}
}

// recover mends everything. Then one of them leads, and goes on leading.
func (s *schedule) recover() {
	for _, r := range s.replicas {
		r.link.set(open)
		r.clock.stall(false)
	}
	for _, r := range s.replicas {
		r.busy.Wait()
	}
	time.Sleep(time.Minute) // the longest pause after errors, and a lease
	led := 0
	for range 60 {
		led += s.look()
		time.Sleep(time.Second)
	}
	if led < 45 { // terms end by themselves too, and then nobody leads for a moment
		s.fault("after all was well again somebody led for %d seconds of 60", led)
	}
}

// The leader is one at any instant, whatever happens to the replicas, and there is
// one again when all is well. The gates play ten thousand of these.
func TestLead_OneLeaderAtAnyInstant(t *testing.T) {
	playAll(t, 30, nothing)
}

func TestLead_CheckerFindsAPlantedSecondLeader(t *testing.T) {
	for _, planted := range []plant{noDeadline, eventsAlone, badQuartz} {
		if all := playAll(t, 6, planted); all.found == 0 {
			t.Errorf("the planted fault %d was not found: %v", planted, all)
		}
	}
}

// tally is what happened in a number of schedules.
type tally struct {
	schedules, found                               int
	elected, looks, failed, cuts, stalls, restarts int64
}

func (a tally) String() string {
	return fmt.Sprintf("%d schedules, %d elections, %d terms that failed, %d links cut, %d processes paused, %d stops; looked %d times, found a fault in %d schedules",
		a.schedules, a.elected, a.failed, a.cuts, a.stalls, a.restarts, a.looks, a.found)
}

// playAll plays schedules. Without a planted fault none must be found, and with one
// what was found is counted.
func playAll(t *testing.T, n int, planted plant) (all tally) {
	t.Helper()
	for seed := range uint64(n) {
		s := play(t, seed, planted)
		if len(s.faults) > 0 {
			all.found++
			if planted == nothing {
				t.Fatalf("schedule %d: %s", seed, strings.Join(s.faults[:min(3, len(s.faults))], "; "))
			}
		}
		all.schedules++
		all.elected += int64(len(s.tokens))
		all.looks += s.looks.Load()
		all.failed += s.failed.Load()
		all.cuts += s.cuts.Load()
		all.stalls += s.stalls.Load()
		all.restarts += s.stops.Load()
	}
	if least := min(all.elected, all.failed, all.cuts, all.stalls, all.restarts); least < int64(n) {
		t.Errorf("too little happened: %v", all)
	}
	return all
}
