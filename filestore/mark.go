package filestore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/lockfx/lockfx"
)

// markWithin bounds the wait for the guard of the mark.
const markWithin = 100 * time.Millisecond

// issue returns a token that is greater than last, than every token that was issued in
// this directory as far as anybody knows, and than the clock at now. It is in the mark
// before it is in a record, so that a crash in between wastes a token but never issues
// one twice.
//
// Who keeps the guard of the mark for too long holds up nobody: the record will have the
// token, and the mark of a later one covers it.
//
// Whoever waits for a guard with two of them in hand must not wait in a circle: the
// guard of the mark is always the last one taken.
func (s *Store) issue(ctx context.Context, last lockfx.Token) (token lockfx.Token, now time.Time, err error) {
	release, err := s.dir.guard(ctx, markGuard, markWithin)
	save := s.saveMark
	switch {
	case errors.Is(err, errBusy):
		save = func(mark) error { return nil }
	case err != nil:
		return 0, now, err
	default:
		defer release()
	}
	now = s.now()
	m, err := s.lastMark(now)
	if err != nil {
		return 0, now, err
	}
	if m.Token, err = s.next(max(last, m.Token), now); err != nil {
		return 0, now, err
	}
	return m.Token, now, save(m)
}

// next returns a token that is greater than last, than what this store issued, and than
// the clock.
func (s *Store) next(last lockfx.Token, now time.Time) (lockfx.Token, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last = max(last, s.issued)
	if last == math.MaxInt64 {
		return 0, fmt.Errorf("no token is left above %v", last)
	}
	s.issued = max(last+1, lockfx.Token(now.UnixMicro()))
	return s.issued, nil
}

// lastMark returns the mark. If there is none, it is made again from the records, each
// of which has the last token of its key.
func (s *Store) lastMark(now time.Time) (mark, error) {
	m, found, err := s.loadMark()
	if err != nil || found {
		return m, err
	}
	m.SweepAt = wall(now.Add(sweepEvery))
	names, err := s.dir.names()
	if err != nil {
		return mark{}, err
	}
	for _, name := range names {
		if _, ok := stripeOf(name); !ok || strings.HasSuffix(name, tempSuffix) {
			continue
		}
		r, err := s.loadNamed(name)
		if err != nil {
			return mark{}, fmt.Errorf("make %s again: %w", markName, err)
		}
		m.Token = max(m.Token, r.Token)
	}
	return m, nil
}

// loadMark returns the mark, and whether there is one.
func (s *Store) loadMark() (m mark, found bool, err error) {
	data, found, err := s.dir.read(markName)
	if found && err == nil {
		m, err = unseal[mark](markFormat, data)
	}
	if err != nil {
		return mark{}, false, fmt.Errorf("read %s: %w", s.dir.file(markName), err)
	}
	return m, found, nil
}

// saveMark replaces the mark. Its guard is held.
func (s *Store) saveMark(m mark) error {
	data, err := seal(markFormat, m)
	if err != nil {
		return err
	}
	// No synchronization of the directory: the one that follows the record's renaming
	// serves both, and until then the token is not in use.
	return s.dir.replace(markName, data)
}
