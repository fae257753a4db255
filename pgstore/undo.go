package pgstore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
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
)

// undo ends the acquisition of tag, whether its request arrived or is still on its
// way. It returns when that is done, or after undoGrace; the attempts go on for
// undoWithin, on other connections than the one that broke.
func (s *Store) undo(ctx context.Context, key string, tag int64) {
	ctx = context.WithoutCancel(ctx)
	done := make(chan struct{})
	s.tasks.run(func() {
		defer close(done)
		ctx, cancel := context.WithTimeout(ctx, undoWithin)
		defer cancel()
		// A refusal is tried again too: a server that is being promoted, or a table that
		// somebody else has locked, will do it a moment later.
		for s.bury(ctx, key, tag) != nil && pause(ctx, undoAgain) {
		}
	})
	grace, cancel := context.WithTimeout(ctx, undoGrace)
	defer cancel()
	select {
	case <-done:
	case <-grace.Done():
	}
}

func (s *Store) bury(ctx context.Context, key string, tag int64) error {
	ctx, cancel := context.WithTimeout(ctx, undoAttempt)
	defer cancel()
	_, err := s.transact(ctx, ignore, []any{key, tag, s.memory, s.channel}, s.stmt.undo)
	return err
}

func ignore(pgx.Rows) error { return nil }

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
