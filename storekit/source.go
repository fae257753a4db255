package storekit

import (
	"maps"
	"slices"
	"time"
)

// Ready confirms all watches, and those to come: the source hears of every name.
func (s *Source) Ready() {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.ready = true
	for _, t := range s.topics {
		t.settle(nil)
	}
}

// Confirm confirms the watches of one name, for a source that has to ask for each.
func (s *Source) Confirm(name string) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if t := s.topics[name]; t != nil {
		t.settle(nil)
	}
}

// Wake signals all who watch name. A channel that is full already says the same.
func (s *Source) Wake(name string) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.topics[name].wake()
}

// WakeAll signals all who watch anything, for a source that may have missed something.
func (s *Source) WakeAll() {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	for _, t := range s.topics {
		t.wake()
	}
}

// Changed has a signal after the names that are watched have changed.
func (s *Source) Changed() <-chan struct{} { return s.changed }

// Names returns the names that are watched, in order.
func (s *Source) Names() []string {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	return slices.Sorted(maps.Keys(s.topics))
}

// remove removes a watch, and ends the source some time after the last one.
func (s *Source) remove(name string, t *topic, signals chan struct{}) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	delete(t.watches, signals)
	if len(t.watches) > 0 || s.topics[name] != t {
		return
	}
	delete(s.topics, name)
	s.note()
	switch {
	case len(s.topics) > 0 || s.over:
	case s.of.Linger == 0:
		s.drop(ErrClosed)
	default:
		s.linger = time.AfterFunc(s.of.Linger, s.giveUp)
	}
}

// giveUp ends a source that nobody has watched for a while.
func (s *Source) giveUp() {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if len(s.topics) == 0 {
		s.drop(ErrClosed)
	}
}

// note says that the names have changed. Watches.mu is held.
func (s *Source) note() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// drop ends the source: watches that are not confirmed get err, and the channels of the
// others are closed. Watches.mu is held.
func (s *Source) drop(err error) {
	s.cancel()
	s.over = true
	if s.linger != nil {
		s.linger.Stop()
	}
	if s.of.current == s {
		s.of.current = nil
	}
	for _, t := range s.topics {
		t.settle(err)
		for signals := range t.watches {
			close(signals)
		}
	}
	clear(s.topics)
}

// settle confirms t, or says why it can't be watched. Watches.mu is held.
func (t *topic) settle(err error) {
	if !t.done {
		t.done, t.err = true, err
		close(t.settled)
	}
}

// wake signals all who watch t, which may be nil. Watches.mu is held.
func (t *topic) wake() {
	if t == nil {
		return
	}
	for signals := range t.watches {
		select {
		case signals <- struct{}{}:
		default:
		}
	}
}
