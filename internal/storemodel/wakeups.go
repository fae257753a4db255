package storemodel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockfx/lockfx"
)

// Signalled reports whether a signal is there already.
func Signalled(freed <-chan struct{}) bool {
	select {
	case _, open := <-freed:
		return open
	default:
		return false
	}
}

// MissedWakeUp lets a waiter race a release many times, and returns an error if a waiter
// that was refused after it began to watch finds no signal. In each tenth round the
// waiter comes first for certain.
func MissedWakeUp(s Store, rounds int, signalled func(<-chan struct{}) bool) error {
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
