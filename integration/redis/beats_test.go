package redis_test

import (
	"context"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

// metronome is the system's clock, but for heartbeats, which come when it says so.
type metronome struct {
	lockfx.Clock
	interval time.Duration

	mu    sync.Mutex // guards beats
	beats []func()
}

func (m *metronome) AfterFunc(d time.Duration, f func()) lockfx.Timer {
	if d > m.interval {
		return m.Clock.AfterFunc(d, f) // the end of a lease
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.beats = append(m.beats, f)
	return unstoppable{}
}

type unstoppable struct{}

func (unstoppable) Stop() bool { return false }

func (m *metronome) armed() int { m.mu.Lock(); defer m.mu.Unlock(); return len(m.beats) }

// beat lets all heartbeats that are armed come at once.
func (m *metronome) beat() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range m.beats {
		go f()
	}
	m.beats = nil
}

// A thousand locks whose heartbeats come at one moment send few commands, and between
// two heartbeats they have no goroutines.
func TestHeartbeatsOfManyLocksAreFewCommands(t *testing.T) {
	const locks, ttl = 1000, time.Hour
	s, sent := over(t, single(t)).recorded(t)
	warm(t, s)
	clock := &metronome{Clock: lockfx.SystemClock(), interval: ttl / 3}
	before := runtime.NumGoroutine()
	all := make([]*fxlock.Lock, locks)
	for n := range all {
		lock, err := fxlock.New(fxlock.WithKey("lock "+strconv.Itoa(n)), fxlock.WithTTL(ttl), fxlock.WithStore(s), fxlock.WithClock(clock))
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := lock.Acquire(t.Context()); !ok || err != nil {
			t.Fatal(ok, err)
		}
		t.Cleanup(func() { _ = lock.Dispose(context.Background()) })
		all[n] = lock
	}
	if n := runtime.NumGoroutine() - before; n > 20 {
		t.Errorf("%d goroutines between two heartbeats", n)
	}
	sent.take()
	begun := time.Now()
	clock.beat()
	eventually(t, "all heartbeats were answered", func() bool { return clock.armed() == locks }) // each arms the next one
	took := time.Since(begun)
	commands := len(sent.take())
	if commands > locks/10 {
		t.Errorf("%d heartbeats took %d commands", locks, commands)
	}
	for n, lock := range all {
		if !lock.Held() {
			t.Fatalf("lock %d is lost", n)
		}
	}
	t.Logf("%d heartbeats took %d commands and %v", locks, commands, took)
}
