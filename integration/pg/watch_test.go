package pg_test

import (
	"testing"
	"time"

	"github.com/lockfx/lockfx/integration/proxy"
	"github.com/lockfx/lockfx/pgstore"
)

func (d direct) listening(e *engine, want int) {
	d.t.Helper()
	d.until("count(*) = $1 FROM pg_stat_activity WHERE query LIKE '-- lockfx waits on %' AND strpos(query, $2) > 0", want, e.table)
}

func watches(t *testing.T, s *pgstore.Store, key string) (<-chan struct{}, func()) {
	t.Helper()
	freed, stop, err := s.Watch(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return freed, stop
}

// signal waits for one, and reports whether the channel is still open.
func signal(t *testing.T, freed <-chan struct{}) (open bool) {
	t.Helper()
	select {
	case _, open = <-freed:
		return open
	case <-time.After(30 * time.Second):
		t.Fatal("no signal")
		return false
	}
}

func TestAllWatchesShareOneConnection(t *testing.T) {
	e := over(t, shared(t), nil)
	store, d := e.store(t), e.direct(t)
	for range 2 { // the second time it is a connection of its own again
		var stops []func()
		for i := range 20 {
			_, stop := watches(t, store, string(rune('a'+i%5)))
			stops = append(stops, stop)
		}
		d.listening(e, 1)
		for _, stop := range stops[1:] {
			stop()
		}
		d.listening(e, 1)
		stops[0]()
		d.listening(e, 0)
	}
}

func TestCloseEndsTheConnectionAndTheWatches(t *testing.T) {
	e := over(t, shared(t), nil)
	store, d := e.store(t), e.direct(t)
	freed, stop := watches(t, store, "nightly")
	defer stop()
	d.listening(e, 1)
	if err := store.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.listening(e, 0)
	if signal(t, freed) {
		t.Error("the channel is open after Close")
	}
	again, stop := watches(t, store, "nightly")
	defer stop()
	if ok, err := store.Release(t.Context(), "nightly", grants(t, store, "nightly", time.Hour)); !ok || err != nil {
		t.Fatal(ok, err)
	}
	signal(t, again)
}

// The key is freed while the connection is down: the waiter is woken when it is up.
func TestABrokenWatchIsMadeAgainAndMissesNothing(t *testing.T) {
	e := over(t, shared(t), nil)
	store := e.store(t)
	other, err := enter(e.server, e.server.Addr(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.close)
	other.table = e.table
	token := grants(t, store, "nightly", time.Hour)
	freed, stop := watches(t, store, "nightly")
	defer stop()
	heal := e.proxy.Inflict(proxy.Drop)
	if ok, err := other.store(t).Release(t.Context(), "nightly", token); !ok || err != nil {
		t.Fatal(ok, err)
	}
	select {
	case <-freed:
		t.Fatal("woken without a connection")
	default:
	}
	heal()
	if !signal(t, freed) {
		t.Error("the watch is lost")
	}
	e.direct(t).listening(e, 1)
}

func TestAWatchIsLostWhenTheServerStaysAway(t *testing.T) {
	t.Parallel() // it mostly waits
	s := postgres(t)
	e := over(t, s, nil)
	store := e.store(t)
	freed, stop := watches(t, store, "nightly")
	defer stop()
	s.Kill()
	for signal(t, freed) {
		continue
	}
	if err := s.Revive(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, stop = watches(t, store, "nightly")
	defer stop()
	e.direct(t).listening(e, 1)
}

// A renewal can shorten a lease. Whoever waits would otherwise wait for its old end.
func TestAShortenedLeaseWakes(t *testing.T) {
	e := over(t, shared(t), nil)
	store := e.store(t)
	token := grants(t, store, "nightly", time.Hour)
	freed, stop := watches(t, store, "nightly")
	defer stop()
	if ok, err := store.Renew(t.Context(), "nightly", token, time.Minute); !ok || err != nil {
		t.Fatal(ok, err)
	}
	signal(t, freed)
	if g := refuses(t, store, "nightly"); g.RetryAfter > time.Minute {
		t.Errorf("retry after %v", g.RetryAfter)
	}
}
