package waiting_test

import (
	"testing"
	"time"
)

// takeOvers kills a process that leads n keys, and returns for each how long it took
// until a successor leads. The kill comes when the process has led for a while.
func takeOvers(t *testing.T, e *engine, n int, ttl, while time.Duration) (took []time.Duration) {
	t.Helper()
	keys := keysOf(t, n)
	killed := told(t, order{Lead: &leaders{Place: e.place(), Keys: keys, TTL: ttl}})
	before := killed.hears(t)
	elected := standBy(t, e.opened(t), keys, ttl)
	time.Sleep(while)
	select {
	case early := <-elected:
		t.Errorf("%q has a second leader", early.key)
	default:
	}
	begin := time.Now()
	killed.kill()
	for range keys {
		e := next(t, elected)
		took = append(took, e.at.Sub(begin))
		if e.token <= before.Tokens[e.key] {
			t.Errorf("%q: token %v after %v", e.key, e.token, before.Tokens[e.key])
		}
	}
	return took
}

// The leases are kept alive until the kill, for longer than one ttl lasts.
func TestALeaderThatIsKilledHasASuccessor(t *testing.T) {
	const ttl = 3 * time.Second
	overEach(t, func(t *testing.T, e *engine) {
		t.Parallel()
		took := takeOvers(t, e, 10, ttl, ttl+ttl/2)
		t.Logf("a successor leads after %v at the median; the ttl is %v", median(took), ttl)
	})
}
