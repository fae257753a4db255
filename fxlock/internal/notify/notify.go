// Package notify hands events to subscribers. None of them holds up the sender or
// another subscriber:
//
//	Notify ──▶ a bounded queue for each subscriber ──▶ its function, one call at a time
//
// A subscriber has a goroutine while it has an event to handle, and no longer. One that
// does not return shows in [Hub.Blocked].
package notify

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Queue is how many events wait for a subscriber at most. When there are more, it misses
// the oldest ones.
const Queue = 64

// Hub has subscribers to events of type E. The zero value is ready, and it is safe for
// concurrent use.
type Hub[E any] struct {
	mu          sync.Mutex // guards what follows, and the subscribers
	present     []E
	subscribers []*subscriber[E]
	busy        map[*subscriber[E]]struct{} // those with a call under way, also if they were stopped
	returned    chan struct{}               // closed when the next call returns; made by who waits
}

type subscriber[E any] struct {
	f      func(e E, missed int)
	name   string
	queue  []E
	missed int       // events that were dropped since the last call
	since  time.Time // of the call under way
}

// Notify passes e to all subscribers. It is the present state from now on, which later
// subscribers get first.
func (h *Hub[E]) Notify(e E) { h.notify(0, e) }

// NotifyAlso is Notify for an event that adds to the present state, in the place of what an
// earlier NotifyAlso added.
func (h *Hub[E]) NotifyAlso(e E) { h.notify(1, e) }

func (h *Hub[E]) notify(keep int, e E) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.present = append(slices.Clone(h.present[:min(keep, len(h.present))]), e)
	for _, s := range h.subscribers {
		h.queue(s, e)
	}
}

// Subscribe makes f be called with the present state, if there is one, and then with
// every event, in order and one at a time. missed is the number of events that were
// dropped right before e. name is what Blocked calls f. stop, which f itself may call,
// ends it without waiting for a call under way.
func (h *Hub[E]) Subscribe(name string, f func(e E, missed int)) (stop func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := &subscriber[E]{f: f, name: name}
	h.subscribers = append(h.subscribers, s)
	for _, e := range h.present {
		h.queue(s, e)
	}
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		s.queue = nil
		h.subscribers = slices.DeleteFunc(h.subscribers, func(other *subscriber[E]) bool { return other == s })
	}
}

// queue queues e for s. h.mu is held.
func (h *Hub[E]) queue(s *subscriber[E], e E) {
	if len(s.queue) == Queue {
		s.queue = s.queue[1:]
		s.missed++
	}
	s.queue = append(s.queue, e)
	if _, busy := h.busy[s]; !busy {
		h.next(s)
	}
}

// next begins the next call of s, if there is one to make. h.mu is held.
func (h *Hub[E]) next(s *subscriber[E]) {
	if len(s.queue) == 0 {
		delete(h.busy, s)
		return
	}
	if h.busy == nil {
		h.busy = make(map[*subscriber[E]]struct{})
	}
	h.busy[s] = struct{}{}
	e, missed := s.queue[0], s.missed
	s.queue, s.missed, s.since = s.queue[1:], 0, time.Now()
	go func() {
		defer h.end(s) // also if f ends its goroutine
		s.f(e, missed)
	}()
}

// end notes that a call of s has returned.
func (h *Hub[E]) end(s *subscriber[E]) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.next(s)
	if h.returned != nil {
		close(h.returned)
		h.returned = nil
	}
}

// Blocked says which subscribers have not returned from a call for longer than patience.
func (h *Hub[E]) Blocked(patience time.Duration) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var blocked []error
	for s := range h.busy {
		if since := time.Since(s.since); since > patience {
			blocked = append(blocked, fmt.Errorf("%s has not returned for %v", s.name, since.Round(time.Millisecond)))
		}
	}
	return errors.Join(blocked...)
}

// Drain waits until the subscribers have handled all events, and those that are left are blocked
// for longer than patience, or until done is closed.
func (h *Hub[E]) Drain(done <-chan struct{}, patience time.Duration) {
	for {
		left, returned := h.left(patience)
		if left < 0 {
			return
		}
		timer := time.NewTimer(left + 1)
		select {
		case <-returned:
		case <-timer.C:
		case <-done:
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// left returns how long the subscriber that was called last may still take, or less than
// 0 if none is waited for, and a channel that closes when a call returns.
func (h *Hub[E]) left(patience time.Duration) (time.Duration, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	left := time.Duration(-1)
	for s := range h.busy {
		left = max(left, patience-time.Since(s.since))
	}
	if h.returned == nil {
		h.returned = make(chan struct{})
	}
	return left, h.returned
}
