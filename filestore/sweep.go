package filestore

import (
	"context"
	"math/rand/v2"
	"strings"
	"time"
)

// The record of a key stays when its lease is over, as a copy of the key's last token
// beside the mark. It goes an hour later, when the clock has long passed that token as
// well. Each hour about every record is looked at once, by some acquisition, and never
// so many in one call that its caller would notice.
const (
	sweepEvery  = time.Hour
	sweepAge    = time.Hour
	sweepAtMost = 1024
)

// sweepIfDue removes files that nobody needs, if it is time to, before the caller holds
// any guard. What stands against it is no concern of the caller's: a file that can't be
// read is reported to whoever asks for its key.
func (s *Store) sweepIfDue(ctx context.Context) {
	if m, found, err := s.loadMark(); err != nil || !found || !m.sweepDue(s.now()) {
		return
	}
	names, err := s.dir.names()
	if err != nil || len(names) == 0 { // all gone since
		return
	}
	now, due := s.claimSweep(len(names))
	if !due {
		return
	}
	start := rand.IntN(len(names))
	for i := range min(len(names), sweepAtMost) {
		if ctx.Err() != nil {
			return
		}
		s.sweep(names[(start+i)%len(names)], now)
	}
}

// sweepDue reports whether it is time to sweep, or whether that time is so far off that
// it must come from a clock that was wrong.
func (m mark) sweepDue(now time.Time) bool {
	return !now.Before(m.SweepAt) || m.SweepAt.After(now.Add(sweepEvery))
}

// claimSweep says whether a sweep is still due, and sets the time of the next one, so
// that no other process sweeps meanwhile.
func (s *Store) claimSweep(files int) (now time.Time, due bool) {
	release, ok := s.dir.tryGuard(markGuard)
	if !ok {
		return now, false // in use, so another time
	}
	defer release()
	now = s.now()
	m, found, err := s.loadMark()
	if err != nil || !found || !m.sweepDue(now) {
		return now, false
	}
	sweeps := 1 + files/sweepAtMost // that it takes to look at every file
	m.SweepAt = wall(now.Add(sweepEvery / time.Duration(sweeps)))
	return now, s.saveMark(m) == nil
}

// sweep removes the record with this name if its lease has been over for long, or the
// temporary file of a record, which a crash has left if nobody holds the guard. The
// mark must know the token.
func (s *Store) sweep(name string, now time.Time) {
	stripe, ok := stripeOf(name)
	if !ok {
		return
	}
	release, ok := s.dir.tryGuard(stripe)
	if !ok {
		return // in use, so look another time
	}
	defer release()
	if !strings.HasSuffix(name, tempSuffix) {
		r, err := s.loadNamed(name)
		if err != nil || now.Before(r.Ends.Add(sweepAge)) {
			return
		}
		if m, found, err := s.loadMark(); err != nil || !found || m.Token < r.Token {
			return
		}
	}
	_ = s.dir.root.Remove(name) // or another time
}
