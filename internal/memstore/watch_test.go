package memstore_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/storemodel"
)

func watch(t testing.TB, s lockfx.Watcher, key string) (<-chan struct{}, func()) {
	t.Helper()
	freed, stop, err := s.Watch(context.Background(), key)
	if err != nil || cap(freed) != 1 {
		t.Fatalf("Watch(%q): capacity %d, %v", key, cap(freed), err)
	}
	return freed, stop
}

func TestWatchSignalsEveryWatcherOfTheKey(t *testing.T) {
	s, _ := newStore()
	free := map[string]func(lockfx.Token){
		"release": func(token lockfx.Token) { release(t, s, "nightly", token, true) },
		"break":   func(lockfx.Token) { forceFree(t, s, "nightly", true) },
	}
	first, stopFirst := watch(t, s, "nightly")
	defer stopFirst()
	second, stopSecond := watch(t, s, "nightly")
	defer stopSecond()
	foreign, stopForeign := watch(t, s, "weekly")
	defer stopForeign()
	for how, freeIt := range free {
		token := grant(t, s, "nightly", time.Minute)
		release(t, s, "nightly", token+1, false)
		renew(t, s, "nightly", token, time.Hour, true)
		if storemodel.Signalled(first) || storemodel.Signalled(second) {
			t.Errorf("%s: signalled while held", how)
		}
		freeIt(token)
		if !storemodel.Signalled(first) || !storemodel.Signalled(second) {
			t.Errorf("%s: a watcher missed it", how)
		}
		if storemodel.Signalled(first) || storemodel.Signalled(foreign) {
			t.Errorf("%s: signalled too often", how)
		}
	}
}

func TestWatchNeverBlocksTheHolder(t *testing.T) {
	s, _ := newStore()
	freed, stop := watch(t, s, "nightly")
	defer stop()
	for range 3 {
		release(t, s, "nightly", grant(t, s, "nightly", time.Minute), true)
	}
	if !storemodel.Signalled(freed) {
		t.Error("no signal")
	}
}

func TestWatchSignalsAShortenedLease(t *testing.T) {
	s, _ := newStore()
	token := grant(t, s, "nightly", time.Hour)
	freed, stop := watch(t, s, "nightly")
	defer stop()
	renew(t, s, "nightly", token, time.Second, true)
	if !storemodel.Signalled(freed) {
		t.Error("a waiter would sleep for an hour on a lease of a second")
	}
}

func TestWatchStopEndsOnlyItself(t *testing.T) {
	s, _ := newStore()
	ended, stop := watch(t, s, "nightly")
	stop()
	freed, stopOther := watch(t, s, "nightly")
	stop() // must not end the watch that took its place
	release(t, s, "nightly", grant(t, s, "nightly", time.Minute), true)
	if storemodel.Signalled(ended) {
		t.Error("signalled after stop")
	}
	if !storemodel.Signalled(freed) {
		t.Error("the other watch was ended as well")
	}
	stopOther()
	stopOther()
}

func TestWatchMayBeStoppedByManyAtOnce(t *testing.T) {
	s, _ := newStore()
	for range 100 {
		_, stop := watch(t, s, "nightly")
		var stoppers sync.WaitGroup
		for range 4 {
			stoppers.Go(stop)
		}
		stoppers.Wait()
	}
}

func TestWatchMissesNoRelease(t *testing.T) {
	s, _ := newStore()
	if err := storemodel.MissedWakeUp(s, 10_000, storemodel.Signalled); err != nil {
		t.Error(err)
	}
	if storemodel.MissedWakeUp(storemodel.Deaf{Store: s}, 10, storemodel.Signalled) == nil {
		t.Error("the test does not notice a missed signal")
	}
}
