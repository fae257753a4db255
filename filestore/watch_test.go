package filestore_test

import (
	"context"
	"errors"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/filestore"
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

// hangs is far more than the system takes to tell news. A test never waits for it unless
// it fails.
const hangs = 20 * time.Second

// wakes waits for a signal.
func wakes(freed <-chan struct{}) bool {
	timer := time.NewTimer(hangs)
	defer timer.Stop()
	select {
	case _, open := <-freed:
		return open
	case <-timer.C:
		return false
	}
}

// settled waits until all the news that there are by now were told to the watchers of s:
// news come in order, and the watch of a key that is freed afterwards has its signal.
func settled(t testing.TB, s *filestore.Store) {
	t.Helper()
	freed, stop := watch(t, s, "the last of the news")
	defer stop()
	release(t, s, "the last of the news", grant(t, s, "the last of the news", time.Minute), true)
	if !wakes(freed) {
		t.Fatal("no news")
	}
}

// watchers are stores that learn of changes by each of the ways.
func watchers(t testing.TB) map[string]*filestore.Store {
	t.Helper()
	refused := open(t, newDir(t))
	refused.WithoutNews(syscall.EMFILE)
	return map[string]*filestore.Store{"news": open(t, newDir(t)), "polling": open(t, newDir(t), filestore.WithPolling(time.Millisecond)), "no news to be had": refused}
}

func TestWatchSignalsEveryWatcherOfTheKey(t *testing.T) {
	for way, s := range watchers(t) {
		first, stopFirst := watch(t, s, "nightly")
		second, stopSecond := watch(t, s, "nightly")
		foreign, stopForeign := watch(t, s, "weekly")
		for how, freeIt := range map[string]func(lockfx.Token){
			"release": func(token lockfx.Token) { release(t, s, "nightly", token, true) },
			"break":   func(lockfx.Token) { forceFree(t, s, "nightly", true) },
		} {
			token := grant(t, s, "nightly", time.Minute)
			release(t, s, "nightly", token+1, false)
			renew(t, s, "nightly", token, time.Hour, true)
			settled(t, s)
			if storemodel.Signalled(first) || storemodel.Signalled(second) {
				t.Errorf("%s, %s: signalled while held", way, how)
			}
			freeIt(token)
			if !wakes(first) || !wakes(second) {
				t.Errorf("%s, %s: a watcher missed it", way, how)
			}
			settled(t, s)
			if storemodel.Signalled(first) || storemodel.Signalled(foreign) {
				t.Errorf("%s, %s: signalled too often", way, how)
			}
		}
		stopFirst()
		stopSecond()
		stopForeign()
	}
}

func TestWatchNeverBlocksTheHolder(t *testing.T) {
	s, _, _ := newStore(t)
	freed, stop := watch(t, s, "nightly")
	defer stop()
	for range 3 {
		release(t, s, "nightly", grant(t, s, "nightly", time.Minute), true)
	}
	if !wakes(freed) {
		t.Error("no signal")
	}
}

func TestWatchSignalsAShortenedLease(t *testing.T) {
	for way, s := range watchers(t) {
		token := grant(t, s, "nightly", time.Hour)
		freed, stop := watch(t, s, "nightly")
		renew(t, s, "nightly", token, time.Second, true)
		if !wakes(freed) {
			t.Errorf("%s: a waiter would sleep for an hour on a lease of a second", way)
		}
		stop()
	}
}

// Two changes may be seen as one. A lease that came and went in between was a moment in
// which the key was free.
func TestWatchSignalsALeaseThatNobodySaw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, newDir(t), filestore.WithPolling(time.Second))
		freed, stop := watch(t, s, "nightly")
		defer stop()
		grant(t, s, "nightly", time.Hour)
		time.Sleep(2 * time.Second)
		if storemodel.Signalled(freed) {
			t.Error("signalled by an acquisition")
		}
		forceFree(t, s, "nightly", true)
		grant(t, s, "nightly", time.Hour)
		time.Sleep(2 * time.Second)
		if !storemodel.Signalled(freed) {
			t.Error("free between two leases: no signal")
		}

		second, stopSecond := watch(t, s, "weekly") // never held
		defer stopSecond()
		release(t, s, "weekly", grant(t, s, "weekly", time.Hour), true)
		grant(t, s, "weekly", time.Hour)
		time.Sleep(2 * time.Second)
		if !storemodel.Signalled(second) {
			t.Error("free between two leases of a new key: no signal")
		}
	})
}

func TestPollingIsJittered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const interval = time.Second
		s := open(t, newDir(t), filestore.WithPolling(interval))
		start := time.Now()
		latencies := map[time.Duration]bool{}
		freed, stop := watch(t, s, "nightly")
		defer stop()
		for range 50 {
			released := time.Now()
			release(t, s, "nightly", grant(t, s, "nightly", time.Hour), true)
			<-freed
			latency := time.Since(released)
			if latency < interval/2 || latency >= interval*3/2 {
				t.Errorf("looked after %v", latency)
			}
			latencies[latency] = true
		}
		if len(latencies) < 40 || time.Since(start) < 40*time.Second {
			t.Errorf("%d different waits in 50, in %v", len(latencies), time.Since(start))
		}
	})
}

func TestWatchStopEndsOnlyItself(t *testing.T) {
	for way, s := range watchers(t) {
		ended, stop := watch(t, s, "nightly")
		_, stopThird := watch(t, s, "weekly") // keeps the subscription
		stop()
		freed, stopOther := watch(t, s, "nightly")
		stop() // must not end the watch that took its place
		release(t, s, "nightly", grant(t, s, "nightly", time.Minute), true)
		if !wakes(freed) {
			t.Errorf("%s: the other watch was ended as well", way)
		}
		if storemodel.Signalled(ended) {
			t.Errorf("%s: signalled after stop", way)
		}
		stopOther()
		stopOther()
		stopThird()
	}
}

func TestWatchMayBeStoppedByManyAtOnce(t *testing.T) {
	for _, s := range watchers(t) {
		for range 100 {
			_, stop := watch(t, s, "nightly")
			var stoppers sync.WaitGroup
			for range 4 {
				stoppers.Go(stop)
			}
			stoppers.Wait()
		}
	}
}

func TestCloseEndsWatchesAndTheStoreOpensAgain(t *testing.T) {
	for way, s := range watchers(t) {
		for range 3 {
			token := grant(t, s, "nightly", time.Minute)
			var all []<-chan struct{}
			for _, key := range []string{"nightly", "nightly", "weekly"} {
				freed, stop := watch(t, s, key)
				defer stop() // after Close, which must not mind
				all = append(all, freed)
			}
			if err := s.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, freed := range all {
				if _, open := <-freed; open {
					t.Errorf("%s: a watch goes on after Close", way)
				}
			}
			renew(t, s, "nightly", token, time.Minute, true)
			freed, stop := watch(t, s, "nightly")
			release(t, s, "nightly", token, true)
			if !wakes(freed) {
				t.Errorf("%s: no signal after Close", way)
			}
			stop()
		}
		if err := s.Close(t.Context()); err != nil {
			t.Errorf("%s: closing a store without watches: %v", way, err)
		}
	}
}

func TestWatchIsLostWithTheDirectory(t *testing.T) {
	for name, lose := range map[string]func(dir string) error{
		"removed": os.RemoveAll,
		"renamed": func(dir string) error { return os.Rename(dir, dir+".away") },
	} {
		for way, s := range watchers(t) {
			grant(t, s, "nightly", time.Minute)
			freed, stop := watch(t, s, "nightly")
			defer stop()
			if err := lose(s.Dir()); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = os.RemoveAll(s.Dir() + ".away") }()
			for open := true; open; { // the removal of the record may signal before
				select {
				case _, open = <-freed:
				case <-time.After(hangs):
					t.Fatalf("%s, directory %s: the watch is not closed", way, name)
				}
			}
			if _, _, err := s.Watch(t.Context(), "nightly"); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s, directory %s: watch: %v", way, name, err)
			}
		}
	}
}

// When the system's queue of news has overflowed, each record may have changed.
func TestTooManyNews(t *testing.T) {
	w := &fsnotify.Watcher{Events: make(chan fsnotify.Event), Errors: make(chan error, 1)}
	w.Errors <- fsnotify.ErrEventOverflow
	if name, ok := filestore.NextNews(w, "/locks"); name != "" || !ok {
		t.Errorf("%q, %v; want news of anything", name, ok)
	}
	close(w.Errors)
	if _, ok := filestore.NextNews(w, "/locks"); ok {
		t.Error("there are no more news")
	}
}

// A record that can't be read concerns whoever waits for the key.
func TestWatchSignalsACorruptRecord(t *testing.T) {
	for way, s := range watchers(t) {
		grant(t, s, "nightly", time.Hour)
		freed, stop := watch(t, s, "nightly")
		writeFile(t, s.Dir(), filestore.LeaseName("nightly"), []byte("?"))
		if !wakes(freed) {
			t.Errorf("%s: no signal", way)
		}
		stop()
		if _, _, err := s.Watch(t.Context(), "nightly"); !errors.Is(err, filestore.ErrCorrupt) {
			t.Errorf("%s: watch: %v", way, err)
		}
	}
}

func TestWatchMissesNoRelease(t *testing.T) {
	s := open(t, newDir(t))
	if err := storemodel.MissedWakeUp(s, 1_000, wakes); err != nil {
		t.Error(err)
	}
	if storemodel.MissedWakeUp(storemodel.Deaf{Store: s}, 10, storemodel.Signalled) == nil {
		t.Error("the test does not notice a missed signal")
	}
}
