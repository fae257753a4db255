package memstore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/lockfx/lockfx"
)

func watch(t testing.TB, s lockfx.Watcher, key string) (<-chan struct{}, func()) {
	t.Helper()
	freed, stop, err := s.Watch(context.Background(), key)
	if err != nil || cap(freed) != 1 {
		t.Fatalf("Watch(%q): capacity %d, %v", key, cap(freed), err)
	}
	return freed, stop
}

func signalled(freed <-chan struct{}) bool {
	select {
	case _, open := <-freed:
		return open
	default:
		return false
	}
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
		if signalled(first) || signalled(second) {
			t.Errorf("%s: signalled while held", how)
		}
		freeIt(token)
		if !signalled(first) || !signalled(second) {
			t.Errorf("%s: a watcher missed it", how)
		}
		if signalled(first) || signalled(foreign) {
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
	if !signalled(freed) {
		t.Error("no signal")
	}
}

func TestWatchSignalsAShortenedLease(t *testing.T) {
	s, _ := newStore()
	token := grant(t, s, "nightly", time.Hour)
	freed, stop := watch(t, s, "nightly")
	defer stop()
	renew(t, s, "nightly", token, time.Second, true)
	if !signalled(freed) {
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
	if signalled(ended) {
		t.Error("signalled after stop")
	}
	if !signalled(freed) {
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

// watchStore is what a waiter needs.
type watchStore interface {
	lockfx.Store
	lockfx.Watcher
}

// missedWakeUp lets a waiter race a release many times, and returns an error if a
// waiter that was refused after it began to watch finds no signal once the release
// has returned. In each tenth round the waiter comes first for certain.
func missedWakeUp(s watchStore, rounds int) error {
	ctx := context.Background()
	acquire := func() (lockfx.Grant, error) { return s.Acquire(ctx, "nightly", time.Hour) }
	for round := range rounds {
		held, err := acquire()
		if err != nil || !held.OK {
			return fmt.Errorf("round %d: the key is not free: %+v, %w", round, held, err)
		}
		waiting, released := make(chan struct{}), make(chan error, 1)
		go func() {
			if round%10 == 0 {
				<-waiting
			}
			ok, err := s.Release(ctx, "nightly", held.Token)
			if !ok {
				err = errors.Join(err, errors.New("release was refused"))
			}
			released <- err
		}()
		freed, stop, err := s.Watch(ctx, "nightly")
		if err != nil {
			return err
		}
		mine, err := acquire()
		close(waiting)
		err = errors.Join(err, <-released)
		if err == nil && !mine.OK {
			if !signalled(freed) {
				err = fmt.Errorf("round %d: a waiter missed the release", round)
			} else {
				mine, err = acquire()
			}
		}
		stop()
		if err != nil {
			return err
		}
		if ok, err := s.Release(ctx, "nightly", mine.Token); !ok || err != nil {
			return fmt.Errorf("round %d: release of the waiter's lease: %v, %w", round, ok, err)
		}
	}
	return nil
}

// deaf is a store that drops every signal: a planted fault.
type deaf struct{ watchStore }

func (d deaf) Watch(context.Context, string) (<-chan struct{}, func(), error) {
	return make(chan struct{}, 1), func() {}, nil
}

func TestWatchMissesNoRelease(t *testing.T) {
	s, _ := newStore()
	if err := missedWakeUp(s, 10_000); err != nil {
		t.Error(err)
	}
	if missedWakeUp(deaf{s}, 10) == nil {
		t.Error("the test does not notice a missed signal")
	}
}
