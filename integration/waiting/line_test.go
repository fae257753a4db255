package queue_test

import (
	"context"
	"testing"
)

// meets makes a crowd wait behind a holder, which then lets go. It returns the
// requests per hand-off.
func meets(t *testing.T, e *engine, c crowd) float64 {
	t.Helper()
	c.Place, c.Key, c.Room = e.place(), t.Name(), roomIn(t.TempDir())
	holder := e.opened(t)
	token := take(t, holder, c.Key, leaseTime)
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	sent, err := c.meet(ctx, func() { free(t, holder, c.Key, token) })
	if err != nil {
		t.Fatal(err)
	}
	return float64(sent) / float64(c.runs())
}

func TestFiftyWhoWaitForOneLockSendFourRequestsForAHandOff(t *testing.T) {
	overEach(t, func(t *testing.T, e *engine) {
		const most = 4
		n := meets(t, e, crowd{Locks: 1, Waiters: 50, Rounds: 4})
		t.Logf("%.2f requests for a hand-off", n)
		if n > most {
			t.Errorf("more than %d requests for a hand-off", most)
		}
	})
}

// A planted fault: without a line, all of a process ask the store.
func TestTheCountNoticesThatThereIsNoLine(t *testing.T) {
	overEach(t, func(t *testing.T, e *engine) {
		if n := meets(t, e, crowd{Locks: 50, Waiters: 1, Rounds: 1}); n <= 4 {
			t.Errorf("%.2f requests for a hand-off between 50 who don't queue", n)
		}
	})
}

func TestFiveProcessesOfTenWhoWaitSendTwentyFiveRequestsForAHandOff(t *testing.T) {
	overEach(t, func(t *testing.T, e *engine) {
		const processes, most = 5, 25
		c := crowd{Place: e.place(), Key: t.Name(), Room: roomIn(t.TempDir()), Locks: 1, Waiters: 10, Rounds: 4}
		holder := e.opened(t)
		token := take(t, holder, c.Key, leaseTime)
		var all []*other
		for range processes {
			all = append(all, told(t, order{Crowd: &c}))
		}
		for _, p := range all {
			if !p.hears(t).Ready {
				t.Fatal("a process did not say that it waits")
			}
		}
		free(t, holder, c.Key, token)
		var sent int64
		for _, p := range all {
			sent += p.hears(t).Sent
		}
		n := float64(sent) / float64(processes*c.runs())
		t.Logf("%.2f requests for a hand-off", n)
		if n > most {
			t.Errorf("more than %d requests for a hand-off", most)
		}
	})
}
