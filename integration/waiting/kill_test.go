package queue_test

import (
	"testing"
	"time"

	"github.com/lockfx/lockfx"
)

// takeOvers kills processes that each lead some keys, and returns for each key how
// long it took until a successor leads. The processes have kept their leases alive for
// longer than the ttl by then, and are killed one by one in the time between two
// heartbeats.
func takeOvers(t *testing.T, e *engine, processes, each int, ttl time.Duration) (took []time.Duration) {
	t.Helper()
	keys := keysOf(t, processes*each)
	var all []*other
	for i := range processes {
		all = append(all, told(t, order{Lead: &leaders{Place: e.place(), Keys: keys[i*each:][:each], TTL: ttl}}))
	}
	ofKey := map[string]*other{}
	before := map[string]lockfx.Token{}
	for _, p := range all {
		for key, token := range p.hears(t).Tokens {
			ofKey[key], before[key] = p, token
		}
	}
	elected := standBy(t, e.opened(t), keys, ttl)
	time.Sleep(ttl + ttl/6) // past the end of the first lease
	killed := map[*other]time.Time{}
	for _, p := range all {
		killed[p] = time.Now()
		p.kill()
		time.Sleep(ttl / 3 / time.Duration(processes))
	}
	for range keys {
		won := next(t, elected)
		since := killed[ofKey[won.key]]
		if won.at.Before(since) {
			t.Fatalf("%q had two leaders", won.key)
		}
		if won.token <= before[won.key] {
			t.Errorf("%q: token %v after %v", won.key, won.token, before[won.key])
		}
		took = append(took, won.at.Sub(since))
	}
	return took
}

func TestALeaderThatIsKilledHasASuccessor(t *testing.T) {
	const ttl = 3 * time.Second
	overEach(t, func(t *testing.T, e *engine) {
		t.Parallel()
		took := takeOvers(t, e, 1, 10, ttl)
		t.Logf("a successor leads after %v at the median; the ttl is %v", median(took), ttl)
	})
}
