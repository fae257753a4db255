package fxlock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

var errStoreDown = errors.New("the store is down")

// started is a call under way.
type call struct{ ended chan ending }

// inBackground makes a call and lets it come to rest.
func inBackground(f func() error) *call {
	c := &call{make(chan ending, 1)}
	go func() { c.ended <- endingOf(f) }()
	synctest.Wait()
	return c
}

// waits checks that the call is still under way.
func (c *call) waits(t *testing.T) {
	t.Helper()
	synctest.Wait()
	select {
	case e := <-c.ended:
		t.Fatalf("it does not wait: %v", e.err)
	default:
	}
}

// endsNow waits for the end of the call, before which no time may pass.
func (c *call) endsNow(t *testing.T) error {
	t.Helper()
	began := time.Now()
	e := <-c.ended
	if passed := time.Since(began); passed > 0 {
		t.Errorf("it went on for %v", passed)
	}
	return e.err
}

// holding holds the lock until the returned function is called.
func holding(t *testing.T, lock *fxlock.Lock) (release func()) {
	t.Helper()
	done := make(chan struct{})
	run := inBackground(func() error {
		return lock.Do(context.Background(), func(context.Context, lockfx.Holder) error {
			<-done
			return nil
		})
	})
	if !lock.Held() {
		t.Fatalf("not held: %v", (<-run.ended).err)
	}
	return sync.OnceFunc(func() {
		close(done)
		noError(t, (<-run.ended).err)
	})
}

func workNothing(context.Context, lockfx.Holder) error { return nil }
