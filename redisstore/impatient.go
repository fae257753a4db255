package redisstore

import (
	"context"
	"time"
)

// impatient is a context with an earlier deadline, and no timer: the client sets the
// deadline on its connection. A timer that is due before all others interrupts the
// runtime's wait for the network each time it is set, which a hand-off would feel.
//
// Without a timer the end shows to whoever asks after it, as the client does before it
// would try again, and not to whoever waits already.
type impatient struct {
	context.Context
	until time.Time
}

func (c impatient) Deadline() (time.Time, bool) {
	if end, ok := c.Context.Deadline(); ok && end.Before(c.until) {
		return end, true
	}
	return c.until, true
}

func (c impatient) over() bool { return !time.Now().Before(c.until) }

func (c impatient) Done() <-chan struct{} {
	if c.over() {
		return past
	}
	return c.Context.Done()
}

func (c impatient) Err() error {
	if err := c.Context.Err(); err != nil || !c.over() {
		return err
	}
	return context.DeadlineExceeded
}

// past is closed.
var past = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()
