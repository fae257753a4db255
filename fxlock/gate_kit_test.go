//go:build torture

package fxlock_test

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"
	"weak"

	"github.com/lockfx/lockfx"
)

// retained is what is left of things that are over.
type retained struct {
	values int     // of those that were watched
	bytes  float64 // of heap, for each
	timers int     // armed
}

// maxBytes is less than the smallest thing that could be kept for each.
const maxBytes = 8

// fault says what is left that should not be, or returns nil.
func (r retained) fault() error {
	if r.values > 0 || r.bytes > maxBytes || r.timers > 0 {
		return fmt.Errorf("still there: %v", r)
	}
	return nil
}

func (r retained) String() string {
	return fmt.Sprintf("%d values, %.1f B each, %d timers", r.values, max(r.bytes, 0), r.timers)
}

// A watchlist has the values of things that must be gone when these are over.
type watchlist struct{ alive []func() bool }

// watch adds v to the list, and returns it.
func watch[T any](w *watchlist, v *T) *T {
	p := weak.Make(v)
	w.alive = append(w.alive, func() bool { return p.Value() != nil })
	return v
}

// look takes off the list what is gone.
func (w *watchlist) look() {
	runtime.GC()
	w.alive = slices.DeleteFunc(w.alive, func(alive func() bool) bool { return !alive() })
}

// retention does a thing many times, and says what is left.
//
// The runtime forgets a stopped timer only when it next tidies up its timers, and
// with it a context that had one. So values get until the end to go away, and those
// of a last, uncounted batch don't count.
func retention(times int, clk *gateClock, do func(i int, w *watchlist)) retained {
	const batch = 1000
	some := func(first, n int, w *watchlist) {
		for i := range n {
			do(first+i, w)
		}
		w.look()
	}
	timers := clk.armed()
	some(0, batch, new(watchlist)) // what is made once for all is not counted
	watched, heap := new(watchlist), liveHeap()
	for first := 0; first < times; first += batch {
		some(first, min(batch, times-first), watched)
	}
	some(times, batch, new(watchlist))
	watched.look()
	left := retained{
		values: len(watched.alive),
		bytes:  float64(liveHeap()-heap) / float64(times),
		timers: clk.armed() - timers,
	}
	runtime.KeepAlive(do)
	return left
}

func liveHeap() int64 {
	runtime.GC()
	runtime.GC() // the first one may leave what a pool still held
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// gateClock moves only when it is told to, and knows its armed timers.
type gateClock struct {
	deaf bool // a planted fault: no timer is stopped

	mu     sync.Mutex // guards what follows
	time   time.Time
	timers map[*gateTimer]struct{}
}

type gateTimer struct {
	clock *gateClock
	at    time.Time
	f     func()
}

var _ lockfx.Clock = (*gateClock)(nil)

func newGateClock() *gateClock {
	return &gateClock{time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), timers: map[*gateTimer]struct{}{}}
}

func (c *gateClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.time
}

func (c *gateClock) AfterFunc(d time.Duration, f func()) lockfx.Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &gateTimer{c, c.time.Add(d), f}
	c.timers[t] = struct{}{}
	return t
}

func (t *gateTimer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	_, armed := t.clock.timers[t]
	if !t.clock.deaf {
		delete(t.clock.timers, t)
	}
	return armed
}

func (c *gateClock) armed() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.timers)
}

// advance moves the time on, and calls what is due by then, in order.
func (c *gateClock) advance(d time.Duration) {
	c.mu.Lock()
	c.time = c.time.Add(d)
	var due []*gateTimer
	for t := range c.timers {
		if !t.at.After(c.time) {
			due = append(due, t)
			delete(c.timers, t)
		}
	}
	c.mu.Unlock()
	slices.SortFunc(due, func(a, b *gateTimer) int { return a.at.Compare(b.at) })
	for _, t := range due {
		t.f()
	}
}
