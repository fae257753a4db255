package etcd_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lockfx/lockfx/etcdstore"
	"github.com/lockfx/lockfx/integration/proxy"
)

func watched(t testing.TB, s *etcdstore.Store, key string) <-chan struct{} {
	t.Helper()
	freed, stop, err := s.Watch(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return freed
}

func wakes(t testing.TB, freed <-chan struct{}) {
	t.Helper()
	select {
	case <-freed:
	case <-time.After(30 * time.Second):
		t.Fatal("not woken in 30 s")
	}
}

func TestOneStreamServesAllWhoWait(t *testing.T) {
	e := one(t)
	s, w := e.wired(t)
	other := e.store(t)
	token := granted(t, other, key, time.Hour)
	var all []<-chan struct{}
	sends(t, w, "fifty watches", map[string]int{"Watch": 1}, func() {
		for i := range 50 {
			watched(t, s, fmt.Sprint("idle ", i))
			all = append(all, watched(t, s, key))
		}
		time.Sleep(2 * time.Second) // nothing is sent while nothing happens
	})
	release(t, other, key, token, true)
	for _, freed := range all {
		wakes(t, freed)
	}
}

func TestAWatchGoesOnOverANewConnection(t *testing.T) {
	e := one(t)
	s := e.store(t)
	direct, err := e.over(e.raw(t))
	if err != nil {
		t.Fatal(err)
	}
	token := granted(t, direct, key, time.Hour)
	freed := watched(t, s, key)
	heal, err := e.inflict(proxy.Drop)
	if err != nil {
		t.Fatal(err)
	}
	release(t, direct, key, token, true) // while nobody listens
	heal()
	wakes(t, freed) // or it is told that the watch is lost
}

// What happened while the connection was broken may be forgotten by then: the watch is
// lost, and those who wait look for themselves.
func TestAWatchAcrossForgottenHistoryIsLost(t *testing.T) {
	e := one(t)
	s, raw := e.store(t), e.raw(t)
	freed := watched(t, s, key)
	heal, err := e.inflict(proxy.Drop)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := raw.Put(t.Context(), "elsewhere", ""); err != nil {
			t.Fatal(err)
		}
	}
	answer, err := raw.Get(t.Context(), "elsewhere")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := raw.Compact(t.Context(), answer.Header.Revision); err != nil {
		t.Fatal(err)
	}
	heal()
	select {
	case _, open := <-freed:
		if open {
			t.Error("a signal, want the channel closed")
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the watch is silent, and blind")
	}
	watchedAgain := watched(t, s, key)
	release(t, s, key, granted(t, s, key, time.Minute), true)
	wakes(t, watchedAgain)
}

func TestAWatchEndsWithItsStore(t *testing.T) {
	e := one(t)
	s := e.store(t)
	freed := watched(t, s, key)
	closed(t, s)
	if _, open := <-freed; open {
		t.Error("a signal, want the channel closed")
	}
	if _, err := e.raw(t).Get(t.Context(), "x"); err != nil {
		t.Errorf("the client was closed: %v", err)
	}
}

func TestAShortenedLeaseWakesAtItsEnd(t *testing.T) {
	e := one(t)
	s := e.store(t)
	token := granted(t, s, key, time.Hour)
	freed := watched(t, s, key)
	renew(t, s, key, token, time.Second, true)
	wakes(t, freed)
	granted(t, s, key, time.Second)
}
