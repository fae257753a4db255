package etcdstore

import (
	"context"
	"errors"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockfx/lockfx/storekit"
)

// hub has the watches of a store. While there is one, it runs a stream.
type hub struct {
	open  func(ctx context.Context) clientv3.WatchChan
	ask   func(ctx context.Context) error // for an answer on what open opened
	stale func(error) error               // of a stream: an error that passes if the next one may do better
	tasks *storekit.Tasks
	name  string // no other store over the client has it

	mu      sync.Mutex // guards what follows, and the streams that ever ran
	current *stream
}

// watch is one caller's interest in a key.
type watch struct {
	name   string
	stream *stream
	freed  chan struct{}
}

// settled adds a watch, and returns it once etcd has confirmed its stream. A stream that
// is not confirmed before ctx's deadline is left: the next one may go elsewhere.
func (h *hub) settled(ctx context.Context, name string) (*watch, error) {
	w, begin := h.watch(name), time.Now()
	var err error
	select {
	case <-w.stream.settled:
		err = w.stream.err
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err == nil {
		return w, nil
	}
	h.unwatch(w)
	if errors.Is(err, context.DeadlineExceeded) && time.Since(begin) >= shortestAttempt {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.drop(w.stream, errSilent)
	}
	return nil, err
}

// watch adds a watch, and starts a stream with the first.
func (h *hub) watch(name string) *watch {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.current == nil {
		h.current = h.start()
	}
	w := &watch{name: name, stream: h.current, freed: make(chan struct{}, 1)}
	of := w.stream.watches[name]
	if of == nil {
		of = map[*watch]struct{}{}
		w.stream.watches[name] = of
	}
	of[w] = struct{}{}
	return w
}

// unwatch removes a watch, and ends the stream with the last. It is called once for
// each watch; the stream may have been lost before.
func (h *hub) unwatch(w *watch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	of := w.stream.watches[w.name]
	delete(of, w)
	if len(of) == 0 {
		delete(w.stream.watches, w.name)
	}
	if len(w.stream.watches) == 0 {
		h.drop(w.stream, errClosed)
	}
}

// close loses all watches.
func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.current != nil {
		h.drop(h.current, errClosed)
	}
}

// drop ends a stream: whoever still waits for it to settle gets err, and the channels
// of the others are closed. h.mu is held.
func (h *hub) drop(st *stream, err error) {
	st.cancel()
	if h.current == st {
		h.current = nil
	}
	if !st.isSettled() {
		st.err = err
		close(st.settled)
	}
	for _, of := range st.watches {
		for w := range of {
			close(w.freed)
		}
	}
	clear(st.watches)
}
