package pgstore

import (
	"context"
	"errors"
	"sync"
)

// hub has the watches of a store. While there is one, it runs a session.
type hub struct {
	open  func(context.Context) (ear, error)
	tasks *tasks

	mu      sync.Mutex // guards what follows, and the watches of every session
	current *session
	deaf    error // why no session can be had, until the store is closed
}

// watch is one caller's interest in a key.
type watch struct {
	session *session
	key     string
	freed   chan struct{}
}

var errClosed = errors.New("the store was closed")

// watch adds a watch, and starts a session with the first. The session may not be
// ready yet.
func (h *hub) watch(key string) (*watch, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.deaf != nil {
		return nil, h.deaf
	}
	if h.current == nil {
		h.current = h.start()
	}
	w := &watch{session: h.current, key: key, freed: make(chan struct{}, 1)}
	all := h.current.watches
	if all[key] == nil {
		all[key] = map[*watch]struct{}{}
	}
	all[key][w] = struct{}{}
	return w, nil
}

// unwatch removes a watch, and ends the session with the last. It is called once for
// each watch; the session may be over.
func (h *hub) unwatch(w *watch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := w.session.watches
	delete(all[w.key], w)
	if len(all[w.key]) == 0 {
		delete(all, w.key)
	}
	if len(all) == 0 {
		h.drop(w.session, errClosed)
	}
}

// close loses all watches.
func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.deaf = nil
	if h.current != nil {
		h.drop(h.current, errClosed)
	}
}

// drop ends a session: whoever still waits for it to be ready gets err, and the
// channels of the others are closed. h.mu is held.
func (h *hub) drop(s *session, err error) {
	s.cancel()
	if deaf := (deafError{}); errors.As(err, &deaf) {
		h.deaf = err
	}
	if h.current == s {
		h.current = nil
	}
	if !s.isReady() {
		s.refusal = err
		close(s.ready)
	}
	for key, ws := range s.watches {
		for w := range ws {
			close(w.freed)
		}
		delete(s.watches, key)
	}
}
