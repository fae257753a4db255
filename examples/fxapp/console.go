package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/examples/fxapp/nightly"
)

// console prints what happens, for people: who, and what. It is safe for concurrent
// use.
type console struct {
	mu sync.Mutex // keeps lines whole
	w  io.Writer
}

// title begins a chapter.
func (c *console) title(text string) { c.print("\n" + text + "\n") }

// say prints a line about who; of a text of several lines, each.
func (c *console) say(who, format string, args ...any) {
	for line := range strings.Lines(fmt.Sprintf(format, args...)) {
		c.print(fmt.Sprintf("  %-10s %s\n", who, strings.TrimSuffix(line, "\n")))
	}
}

func (c *console) print(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = io.WriteString(c.w, text) // there is nobody else to tell
}

// observe returns an observer of the lock of who.
func (c *console) observe(who string) func(lockfx.Event) {
	return func(e lockfx.Event) {
		switch e.Kind {
		case lockfx.EventAcquired:
			c.say(who, "holds the lease, with fencing token %d", e.Token)
		case lockfx.EventRefused:
			c.say(who, "is refused: %s holds the lease, for at most %v", e.HeldBy, round(e.RetryAfter))
		case lockfx.EventLost:
			c.say(who, "has lost its lease: %v", e.Reason)
		case lockfx.EventReleased:
			if e.Reason == lockfx.ReasonReleased && e.Err == nil {
				c.say(who, "has released its lease, held for %v", round(e.HeldFor))
			}
		case lockfx.EventDisposed:
			c.say(who, "has disposed of its lock")
		default:
			c.say(who, "%s: %v", e.Kind, e.Err)
		}
	}
}

// progress returns what prints how far who has read.
func (c *console) progress(who string) nightly.Progress {
	return func(lines, bytes, size int64) {
		percent := min(100, 100*bytes/max(size, 1))
		c.say(who, "reads the log %s %3d%%  %d lines", bar(percent), percent, lines)
	}
}

func bar(percent int64) string {
	full := int(percent / 5)
	return "[" + strings.Repeat("#", full) + strings.Repeat(".", 20-full) + "]"
}

func round(d time.Duration) time.Duration { return d.Round(10 * time.Millisecond) }
