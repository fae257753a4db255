package lifecycle_test

import (
	"math"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/lockfx/lockfx"
)

// origin carries a monotonic reading, which no time made in a bubble does.
var origin = time.Now()

// clock runs like the system's, in and out of bubbles, but its wall and its
// monotonic reading can leap by themselves, and it counts its timers.
type clock struct {
	start      time.Time
	wall, mono atomic.Int64 // how far each reading has leapt, in nanoseconds
	left       atomic.Int64 // how many timers it still arms
	armed      atomic.Int64 // timers that neither fired nor were stopped
	hasty      atomic.Bool  // timers fire in half their time
	typedNil   atomic.Bool  // a timer that can't be armed is a nil pointer
}

func newClock() *clock {
	c := &clock{start: time.Now()}
	c.left.Store(math.MaxInt64)
	return c
}

func (c *clock) Now() time.Time {
	wall, mono := c.wall.Load(), c.mono.Load()
	t := origin.Add(time.Since(c.start) + time.Duration(wall))
	return leapMonotonic(t, time.Duration(mono-wall))
}

// leap moves the readings, but fires no timer.
func (c *clock) leap(wall, mono time.Duration) {
	c.wall.Add(int64(wall))
	c.mono.Add(int64(mono))
}

func (c *clock) AfterFunc(d time.Duration, f func()) lockfx.Timer {
	if d < 0 {
		panic("a timer for the past")
	}
	if c.left.Add(-1) < 0 {
		if c.typedNil.Load() {
			return (*alarm)(nil)
		}
		return nil
	}
	if c.hasty.Load() {
		d /= 2
	}
	c.armed.Add(1)
	return &alarm{c, time.AfterFunc(d, func() {
		c.armed.Add(-1)
		f()
	})}
}

type alarm struct {
	c *clock
	t *time.Timer
}

func (a *alarm) Stop() bool {
	stopped := a.t.Stop()
	if stopped {
		a.c.armed.Add(-1)
	}
	return stopped
}

// leapMonotonic moves the monotonic reading of t, which it must have, and nothing
// else. Package time has no way to do this.
func leapMonotonic(t time.Time, d time.Duration) time.Time {
	fields := (*struct {
		wall uint64
		ext  int64
		loc  *time.Location
	})(unsafe.Pointer(&t))
	fields.ext += int64(d)
	return t
}

func TestLeapMonotonicMovesNothingElse(t *testing.T) {
	for _, d := range []time.Duration{0, 1, time.Hour, -time.Hour} {
		leapt := leapMonotonic(origin, d)
		if got := leapt.Sub(origin); got != d {
			t.Errorf("by the monotonic clock %v have passed, want %v", got, d)
		}
		if !leapt.Round(0).Equal(origin.Round(0)) {
			t.Errorf("%v: the wall clock moved from %v to %v", d, origin, leapt)
		}
	}
}
