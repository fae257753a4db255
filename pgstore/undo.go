package pgstore

import (
	"context"
	"time"
)

const (
	// undoWithin bounds the undoing of an acquisition, undoAttempt one attempt at it.
	undoWithin  = 10 * time.Second
	undoAttempt = 2 * time.Second
	// undoGrace is how long an acquisition whose outcome is unknown waits for its
	// undoing, so that ordinarily the key is free again when it returns.
	undoGrace = 50 * time.Millisecond
	// undoAgain is the pause between two attempts.
	undoAgain = 100 * time.Millisecond
	// tombstone is how long a request that was undone may be on its way. TCP gives up
	// after less than half of that.
	tombstone = time.Hour
)

// undo ends an acquisition, whether its request arrived or is still on its
// way. It returns when that is done, or after undoGrace; the attempts go on for
// undoWithin, on other connections than the one that broke.
func (s *Store) undo(ctx context.Context, key string, number int64) {
	ctx = context.WithoutCancel(ctx)
	done := s.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, undoWithin)
		defer cancel()
		// A refusal is tried again too: a server that is being promoted, or a table that
		// somebody else has locked, will do it a moment later.
		for {
			attempt, cancel := context.WithTimeout(ctx, undoAttempt)
			err := s.bury(attempt, key, number)
			cancel()
			if err == nil || !pause(ctx, undoAgain) {
				return
			}
		}
	})
	grace, cancel := context.WithTimeout(ctx, undoGrace)
	defer cancel()
	select {
	case <-done:
	case <-grace.Done():
	}
}

// bury frees the lease of an acquisition, or leaves a tombstone for its request.
func (s *Store) bury(ctx context.Context, key string, number int64) error {
	_, err := s.call(ctx, request{statement: s.stmt.undo, args: []any{key, s.client, number, tombstone.Microseconds(), s.channel}, read: ignore})
	return err
}

// pause waits for d and reports whether ctx is still alive.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
