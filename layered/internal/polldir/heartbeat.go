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

// expired judges by the later of the monotonic and the wall clock: the first stands
// still while a machine is suspended.
func (l *Lock) expired() bool {
	now := time.Now()
	return max(now.Sub(l.asked), now.Round(0).Sub(l.asked.Round(0))) >= l.trusted()
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
		case errors.Is(err, errTaken), l.expired():
			if !errors.Is(err, errTaken) {
				err = errors.Join(errExpired, err)
			}
			l.lose(err)
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
	if done := time.Now(); max(done.Sub(before), done.Round(0).Sub(before.Round(0))) >= l.trusted() {
		l.asked = before
		return fmt.Errorf("refresh %s: %w", l.path, errExpired)
	}
	return nil
}
