// Package fifo has mutexes by key that serve their waiters in the order in which
// they came.
package fifo

import (
	"context"
	"errors"
	"sync"
)

// ErrBusy says that one attempt met a holder. Every layer uses it.
var ErrBusy = errors.New("held by another")

// Set is a mutex for each key. The zero Set is ready, and costs memory for the keys
// that are held alone. All methods are safe for concurrent use.
type Set[K comparable] struct {
	mu   sync.Mutex
	held map[K]line // guarded by mu; a key is in it while it is held
}

// line is who waits for a key, in order.
type line struct{ first, last *waiter }

type waiter struct {
	turn       chan struct{} // closed when the key was passed on to this waiter
	granted    bool          // guarded by Set.mu
	prev, next *waiter
}

// Lock takes key, after all who came before. It returns the cause of ctx's end if
// that came first; then nothing is held.
func (s *Set[K]) Lock(ctx context.Context, key K) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.mu.Lock()
	l, busy := s.held[key]
	if !busy {
		s.take(key)
		s.mu.Unlock()
		return nil
	}
	w := &waiter{turn: make(chan struct{}), prev: l.last}
	if l.last == nil {
		l.first = w
	} else {
		l.last.next = w
	}
	l.last = w
	s.held[key] = l
	s.mu.Unlock()

	select {
	case <-w.turn:
		if ctx.Err() == nil {
			return nil
		}
	case <-ctx.Done():
	}
	s.leave(key, w)
	return context.Cause(ctx)
}

// TryLock takes key if nobody holds it.
func (s *Set[K]) TryLock(key K) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, busy := s.held[key]; busy {
		return false
	}
	s.take(key)
	return true
}

// Unlock passes key on to the first who waits. The key must be held.
func (s *Set[K]) Unlock(key K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.passOn(key)
}

// Waiting returns how many wait for key now.
func (s *Set[K]) Waiting(key K) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for w := s.held[key].first; w != nil; w = w.next {
		n++
	}
	return n
}

// Len returns how many keys are held now.
func (s *Set[K]) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.held)
}

func (s *Set[K]) take(key K) {
	if s.held == nil {
		s.held = make(map[K]line)
	}
	s.held[key] = line{}
}

func (s *Set[K]) passOn(key K) {
	l, held := s.held[key]
	if !held {
		panic("fifo: unlock of a key that is not held")
	}
	w := l.first
	if w == nil {
		delete(s.held, key)
		return
	}
	s.remove(key, w)
	w.granted = true
	close(w.turn)
}

// leave takes w out of the line, or passes on the key if it was granted meanwhile.
func (s *Set[K]) leave(key K, w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.granted {
		s.passOn(key)
		return
	}
	s.remove(key, w)
}

func (s *Set[K]) remove(key K, w *waiter) {
	l := s.held[key]
	if w.prev == nil {
		l.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		l.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	s.held[key] = l
}
