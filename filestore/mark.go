package filestore

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/lockfx/lockfx"
)

// issue returns a token that is greater than last, than every token that was issued in
// this directory as far as anybody knows, and than the clock at now. It is in the mark
// before it is in a record, so that a crash in between wastes a token but never issues
// one twice.
//
// Whoever waits for a guard with two of them in hand must not wait in a circle: the
// guard of the mark is always the last one taken.
func (s *Store) issue(ctx context.Context, last lockfx.Token) (token lockfx.Token, now time.Time, err error) {
	release, err := s.dir.guard(ctx, markGuard)
	if err != nil {
		return 0, now, err
	}
	defer release()
	now = s.now()
	m, err := s.lastMark(now)
	if err != nil {
		return 0, now, err
	}
	last = max(last, m.Token, s.issued)
	if last == math.MaxInt64 {
		return 0, now, fmt.Errorf("no token is left above %v", last)
	}
	m.Token = max(last+1, lockfx.Token(now.UnixMicro()))
	if err := s.saveMark(m); err != nil {
		return 0, now, err
	}
	s.issued = m.Token
	return m.Token, now, nil
}

// knownMark returns the mark as [Store.issue] would find it.
func (s *Store) knownMark(ctx context.Context) (mark, error) {
	release, err := s.dir.guard(ctx, markGuard)
	if err != nil {
		return mark{}, err
	}
	defer release()
	return s.lastMark(s.now())
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
