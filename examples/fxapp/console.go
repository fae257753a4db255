package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

// console prints what happens, for people: who, and what. It is safe for concurrent use.
type console struct {
	mu sync.Mutex // keeps lines whole
	w  io.Writer
}

func (c *console) print(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = fmt.Fprintf(c.w, format+"\n", args...)
}

func (c *console) title(format string, args ...any) { c.print("\n"+format, args...) }

func (c *console) say(who, format string, args ...any) {
	c.print("  %-10s "+format, append([]any{who}, args...)...)
}

// observe returns an observer that tells what becomes of the lock of who.
func (c *console) observe(who string) func(lockfx.Event) {
	return func(e lockfx.Event) {
		switch e.Kind {
		case lockfx.EventAcquired:
			c.say(who, "holds the lease, with fencing token %d", e.Token)
		case lockfx.EventRefused:
			c.say(who, "is refused: %s holds the lease, for at most %v", e.HeldBy, e.RetryAfter.Round(10*time.Millisecond))
		case lockfx.EventLost:
			c.say(who, "has lost its lease: %v", e.Reason)
		case lockfx.EventReleased:
			if e.Reason == lockfx.ReasonReleased {
				c.say(who, "has released its lease, held for %v", e.HeldFor.Round(10*time.Millisecond))
			}
		case lockfx.EventFailed:
			c.say(who, "has no answer from the store: %v", e.Err)
		}
	}
}

// leads returns a subscriber that tells what becomes of the campaign of who.
func (c *console) leads(who string) func(fxlock.LeadershipEvent) {
	return func(e fxlock.LeadershipEvent) {
		switch e.Change {
		case fxlock.LeadershipElected:
			c.say(who, "LEADS, with fencing token %d", e.Token)
		case fxlock.LeadershipStandingBy, fxlock.LeadershipEnded, fxlock.LeadershipStoodDown:
			c.say(who, "%v", e.Change)
		}
	}
}

// telling is a sink that tells what becomes of a write.
type telling struct {
	sink
	who string
	out *console
}

func (s telling) Write(ctx context.Context, fence lockfx.Token, text string) error {
	err := s.sink.Write(ctx, fence, text)
	switch {
	case err == nil:
		s.out.say(s.who, "has written the report with token %d", fence)
	case errors.Is(err, lockfx.ErrStaleToken):
		s.out.say(s.who, "IS REFUSED: %v", err)
	default:
		s.out.say(s.who, "has not written: %v", err)
	}
	return err
}
