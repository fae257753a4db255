package memoize_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfx/lockfx/memoize"
)

// schedule is a script: when callers come and lose patience, and how long each flight
// takes and what it comes to. No two of its instants coincide, so what has to happen is
// determined to the nanosecond.
type schedule struct {
	callers []caller
	flights []flightPlan
}

type caller struct{ comes, leaves time.Duration } // since the start; leaves may be never

type flightPlan struct {
	takes   time.Duration
	ends    ending
	heedful bool // ends at once when its context does
}

type ending int

const (
	succeeds ending = iota
	fails
	panics
	goexits
	endings
)

const never = time.Duration(1<<63 - 1)

// answer is when a caller got what.
type answer struct {
	at  time.Duration
	got string
}

func random(r *rand.Rand) schedule {
	var s schedule
	ms := func(n int) time.Duration { return time.Duration(r.IntN(n)) * time.Millisecond }
	for i := range 1 + r.IntN(8) {
		unique := time.Duration(i + 1)
		c := caller{comes: ms(40) + unique, leaves: never}
		if r.IntN(2) == 0 {
			c.leaves = c.comes + ms(30) + 100*unique
		}
		s.callers = append(s.callers, c)
	}
	for i := range len(s.callers) + 1 { // more are never needed: each flight that fails answers a caller
		s.flights = append(s.flights, flightPlan{
			takes: ms(20) + 10*time.Microsecond*time.Duration(i+1), ends: ending(r.IntN(int(endings))), heedful: r.IntN(2) == 0,
		})
	}
	return s
}

// play lets callers and flights act by the script, and returns what each caller got.
func (s schedule) play(memo func(func(context.Context) (int, error)) func(context.Context) (int, error)) []answer {
	start := time.Now()
	var runs, flying atomic.Int32
	get := memo(func(ctx context.Context) (int, error) {
		if flying.Add(1) > 1 {
			return -1, nil // no schedule expects this
		}
		defer flying.Add(-1)
		this := int(runs.Add(1)) - 1
		plan := s.flights[min(this, len(s.flights)-1)]
		flight := time.NewTimer(plan.takes)
		defer flight.Stop()
		if plan.heedful {
			select {
			case <-flight.C:
			case <-ctx.Done():
				return 0, context.Cause(ctx)
			}
		} else {
			<-flight.C
		}
		switch plan.ends {
		case fails:
			return 0, fmt.Errorf("error %d", this)
		case panics:
			panic(fmt.Sprint("panic ", this))
		case goexits:
			runtime.Goexit()
		}
		return this, nil
	})
	answers := make([]answer, len(s.callers))
	var all sync.WaitGroup
	for i, c := range s.callers {
		all.Go(func() {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			if c.leaves != never {
				ctx, cancel = context.WithDeadline(ctx, start.Add(c.leaves))
				defer cancel()
			}
			time.Sleep(c.comes)
			defer func() {
				if p := recover(); p != nil {
					answers[i] = answer{time.Since(start), fmt.Sprint(p.(*memoize.PanicError).Value)}
				}
			}()
			v, err := get(ctx)
			answers[i] = answer{time.Since(start), describe(v, err)}
		})
	}
	all.Wait()
	time.Sleep(time.Second) // for a flight that everybody left and that does not heed it
	return answers
}

func describe(v int, err error) string {
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint("value ", v)
}

// expect works out by hand, event by event, what each caller has to get.
func (s schedule) expect() []answer {
	answers := make([]answer, len(s.callers))
	var (
		kept      string
		run       = -1 // of the flight under way, or of the last one
		flying    bool
		abandoned bool
		lands     time.Duration
		joined    = map[int]bool{} // callers who wait for this flight
		queued    = map[int]bool{} // callers who wait for an abandoned one to end
	)
	take := func(at time.Duration, i int) {
		if !flying {
			run, flying, abandoned = run+1, true, false
			lands = at + s.flights[run].takes
		}
		joined[i] = true
	}
	settle := func(at time.Duration, who map[int]bool, got string) {
		for i := range who {
			answers[i] = answer{at, got}
			delete(who, i)
		}
	}
	land := func(at time.Duration) {
		flying = false
		got := [...]string{fmt.Sprint("value ", run), fmt.Sprint("error ", run), fmt.Sprint("panic ", run), memoize.ErrGoexit.Error()}[s.flights[run].ends]
		settle(at, joined, got)
		if s.flights[run].ends == succeeds {
			kept = got
			settle(at, queued, kept)
		}
		for i := range queued {
			delete(queued, i)
			take(at, i)
		}
	}
	leave := func(at time.Duration, i int) {
		waited := joined[i]
		if !waited && !queued[i] {
			return // answered before
		}
		settle(at, map[int]bool{i: true}, context.DeadlineExceeded.Error())
		delete(joined, i)
		delete(queued, i)
		if waited && len(joined) == 0 {
			abandoned = true
			flying = !s.flights[run].heedful
		}
	}
	come := func(at time.Duration, i int) {
		switch {
		case kept != "":
			answers[i] = answer{at, kept}
		case flying && abandoned:
			queued[i] = true
		default:
			take(at, i)
		}
	}

	type event struct {
		at time.Duration
		do func(time.Duration, int)
		i  int
	}
	var events []event
	for i, c := range s.callers {
		events = append(events, event{c.comes, come, i}, event{c.leaves, leave, i})
	}
	slices.SortFunc(events, func(a, b event) int { return int(min(max(a.at-b.at, -1), 1)) })
	for _, e := range events {
		for flying && lands < e.at {
			land(lands)
		}
		if e.at != never {
			e.do(e.at, e.i)
		}
	}
	return answers
}

// disagreement plays random schedules, and returns the first that went otherwise than
// it had to.
func disagreement(t *testing.T, schedules int, memo func(func(context.Context) (int, error)) func(context.Context) (int, error)) (err error) {
	const perBubble = 100
	for bubble := range schedules / perBubble {
		synctest.Test(t, func(*testing.T) {
			for i := range perBubble {
				seed := uint64(bubble*perBubble + i)
				s := random(rand.New(rand.NewPCG(seed, 1)))
				if got, want := s.play(memo), s.expect(); err == nil && !slices.Equal(got, want) {
					err = fmt.Errorf("seed %d: %+v\ngot  %v\nwant %v", seed, s, got, want)
				}
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func TestRandomSchedules(t *testing.T) {
	if err := disagreement(t, 10_000, memoize.Func[int]); err != nil {
		t.Error(err)
	}
}

// The planted faults: each one is a mistake that a getter could make.
func TestRandomSchedulesNoticePlantedFaults(t *testing.T) {
	type getter = func(context.Context) (int, error)
	for name, memo := range map[string]func(getter) getter{
		"keeps nothing": func(fn getter) getter {
			return func(ctx context.Context) (int, error) { return memoize.Func(fn)(ctx) }
		},
		"keeps a failure": func(fn getter) getter {
			var failure atomic.Value
			get := memoize.Func(fn)
			return func(ctx context.Context) (int, error) {
				if err, failed := failure.Load().(string); failed {
					return 0, errors.New(err)
				}
				v, err := get(ctx)
				if err != nil {
					failure.Store(err.Error())
				}
				return v, err
			}
		},
		"the first caller's end ends the flight": func(fn getter) getter {
			return func(ctx context.Context) (int, error) {
				first := ctx
				return memoize.Func(func(context.Context) (int, error) { return fn(first) })(ctx)
			}
		},
		"nobody can leave": func(fn getter) getter {
			get := memoize.Func(fn)
			return func(ctx context.Context) (int, error) { return get(context.WithoutCancel(ctx)) }
		},
		"is never cancelled": func(fn getter) getter {
			return memoize.Func(func(ctx context.Context) (int, error) { return fn(context.WithoutCancel(ctx)) })
		},
		"a failure is nil, nil": func(fn getter) getter {
			get := memoize.Func(fn)
			return func(ctx context.Context) (int, error) { v, _ := get(ctx); return v, nil }
		},
	} {
		if disagreement(t, 100, memo) == nil {
			t.Errorf("%q goes unnoticed", name)
		}
	}
}
