package storetest_test

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/storetest"
)

// harness offers everything that the kit can use, over an engine with one fault.
func harness(t *testing.T, fault string) storetest.Factory {
	return func() (*storetest.Harness, error) {
		e := newEngine(fault)
		self := handle{engine: e}
		open := func() (lockfx.Store, error) { return self, nil }
		restart := open
		second := func() (lockfx.Store, error) { return handle{engine: e, second: true}, nil }
		if e.has("each handle is a world of its own") {
			second = func() (lockfx.Store, error) { return handle{engine: newEngine("")}, nil }
		}
		if e.has("a restart starts tokens again") {
			restart = func() (lockfx.Store, error) { return handle{engine: newEngine("tokens do not outlive the data")}, nil }
		}
		waive := map[string]string{}
		if e.has("a waiver is misspelt") {
			waive["tokens/rise"] = "it does not, or so we think"
		}
		return &storetest.Harness{
			Waive:      waive,
			Store:      self,
			TTL:        100 * time.Millisecond,
			Resolution: time.Millisecond,
			Wrap:       func(run func()) { synctest.Test(t, func(*testing.T) { run() }) },
			Second:     second,
			Restart:    restart,
			LoseData: func() (lockfx.Store, error) {
				time.Sleep(time.Millisecond) // what loses its data takes a while
				clear(e.records)
				clear(e.last)
				return self, nil
			},
			Partition:   func() (func(), error) { return e.set(&e.down) },
			LoseReplies: func() (func(), error) { return e.set(&e.mute) },
			Hold:        e.holdNext,
			SkewClientClock: func(d time.Duration) (lockfx.Store, error) {
				return handle{engine: e, skew: d}, nil
			},
			StepClock: func(d time.Duration) error {
				e.mu.Lock()
				defer e.mu.Unlock()
				e.offset += d
				return nil
			},
			Crash: self.Crash,
		}, nil
	}
}

func TestACorrectStoreBreaksNothing(t *testing.T) {
	if broken := storetest.Check(t.Context(), harness(t, "")); len(broken) > 0 {
		t.Fatalf("broken: %v", broken)
	}
}

// A machine that sleeps for too long now and then breaks no promise; one that always
// does is told so.
func TestASlowMachineShowsNothing(t *testing.T) {
	slow := func(every int) map[string]error {
		made := 0
		return storetest.Check(t.Context(), func() (*storetest.Harness, error) {
			h, err := harness(t, "")()
			if made++; made%every == 0 {
				h.Sleep = func(d time.Duration) { time.Sleep(d + h.TTL) }
			}
			return h, err
		})
	}
	for name, err := range slow(2) {
		t.Errorf("%s: %v", name, err)
	}
	always := slow(1)
	for name, err := range always {
		if !strings.Contains(err.Error(), "give the harness a longer TTL") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(always) < 5 {
		t.Errorf("only %d cases noticed: %v", len(always), always)
	}
}

// racy says of a case that a fault may slip through it now and then: it looks for
// two at once, and they may miss each other.
func racy(name string) bool {
	switch name {
	case "exclusion/never-two-at-once", "exclusion/one-winner", "handles/one-winner", "many/callers-do-not-lock-each-other-out",
		"tokens/rise-under-contention", "outages/contention-is-no-error", "watch/no-wake-up-is-missed":
		return true
	}
	return strings.Contains(name, "races")
}

// Each of them is seen to fail all the same.
func TestRacyCasesFail(t *testing.T) {
	for _, p := range storetest.Promises() {
		if racy(p.Name) {
			t.Run(p.Name, func(t *testing.T) {
				for range 20 {
					for fault, names := range faults {
						if slices.Contains(names, p.Name) && p.Broken(t.Context(), harness(t, fault)) != nil {
							return
						}
					}
				}
				t.Error("no planted fault was noticed")
			})
		}
	}
}

// mad is a store whose refusals are panics, or end the goroutine of their caller.
type mad struct {
	lockfx.Store
	refuse func()
}

func (m mad) Acquire(ctx context.Context, key string, ttl time.Duration) (lockfx.Grant, error) {
	g, err := m.Store.Acquire(ctx, key, ttl)
	if err == nil && !g.OK {
		m.refuse()
	}
	return g, err
}

// What happens to one of many who ask at once is seen as well.
func TestAStoreThatGoesMadUnderContentionBreaksPromises(t *testing.T) {
	for name, refuse := range map[string]func(){"panic": func() { panic("held") }, "goexit": runtime.Goexit} {
		broken := storetest.Check(t.Context(), func() (*storetest.Harness, error) {
			h, err := harness(t, "")()
			h.Store = mad{h.Store, refuse}
			return h, err
		})
		for _, promise := range []string{"exclusion/one-winner", "outages/contention-is-no-error"} {
			if broken[promise] == nil {
				t.Errorf("%s: %s was kept", name, promise)
			}
		}
	}
}
