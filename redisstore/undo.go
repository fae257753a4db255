package redisstore

import (
	"context"
	"time"
)

const (
	// undoWithin bounds the undoing of an acquisition.
	undoWithin = 5 * time.Second
	// undoGrace is how long an acquisition whose ctx is over waits for its undoing,
	// so that ordinarily the key is free again when it returns.
	undoGrace = 50 * time.Millisecond
	// firstPause and longestPause are between two attempts.
	firstPause   = 50 * time.Millisecond
	longestPause = 400 * time.Millisecond
	// tombstone is how long a request may be on its way after its undoing.
	tombstone = 5 * time.Minute
)

// undo ends the acquisition of tag, whether its request arrived or is still on its
// way. It returns when that is done, or after undoGrace; the attempts go on for
// undoWithin.
func (s *Store) undo(ctx context.Context, lock, tag string) {
	done := s.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoWithin)
		defer cancel()
		// A refusal is tried again too: a server that is loading or being promoted
		// refuses to write, and soon will not.
		for wait := firstPause; ; wait = min(2*wait, longestPause) {
			_, err := s.eval(ctx, undoScript, []string{lock, undoneName(lock, tag)}, tag, tombstone.Milliseconds())
			if err == nil || !pause(ctx, wait) {
				return
			}
		}
	})
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoGrace)
	defer cancel()
	select {
	case <-done:
	case <-grace.Done():
	}
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
