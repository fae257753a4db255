package polldir

import (
	"errors"
	"fmt"
	"time"
)

// refreshRetry is the time between attempts of a refresh that failed.
const refreshRetry = time.Second

// start starts the heartbeat. It ends at Unlock, or when the lock is lost.
func (l *Lock) start(lost func(error)) {
	l.lost = lost
	l.stop = make(chan struct{})
	l.stopped = make(chan struct{})
	l.deadline = time.AfterFunc(time.Until(l.asked.Add(l.trusted())), func() { l.lose(errExpired) })
	go l.beat()
}

// trusted is how long after a refresh we trust the lock: less than the stale time,
// since the clocks of others may run a little faster.
func (l *Lock) trusted() time.Duration { return l.stale - l.stale/100 - 2*time.Millisecond }

func (l *Lock) expired() bool { return elapsed(l.asked) >= l.trusted() }

// elapsed judges by the later of the monotonic and the wall clock: the first stands
// still while a machine is suspended.
func elapsed(since time.Time) time.Duration {
	now := time.Now()
	return max(now.Sub(since), now.Round(0).Sub(since.Round(0)))
}

func (l *Lock) beat() {
	defer close(l.stopped)
	timer := time.NewTimer(l.stale / 2)
	defer timer.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-timer.C:
		}
		err := l.refresh()
		switch {
		case errors.Is(err, errTaken), errors.Is(err, errExpired):
			l.lose(err)
			return
		case err != nil && l.expired():
			l.lose(fmt.Errorf("%w: %w", errExpired, err))
			return
		case err != nil:
			timer.Reset(refreshRetry)
		default:
			l.deadline.Reset(time.Until(l.asked.Add(l.trusted())))
			timer.Reset(time.Until(l.asked.Add(l.stale / 2)))
		}
	}
}

func (l *Lock) refresh() error {
	if l.expired() {
		return errExpired
	}
	if err := l.check(); err != nil {
		return err
	}
	asked, before := time.Now(), l.asked
	if err := l.touch(asked); err != nil {
		return err
	}
	// Paused between the look and the touch for longer than the lock lasted, we may
	// have touched the lock of another.
	if elapsed(before) >= l.trusted() {
		l.asked = before
		return errExpired
	}
	return nil
}
