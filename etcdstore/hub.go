package etcdstore

import (
	"context"
	"errors"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// hub has the watches of a store. While there is one, it runs a stream.
type hub struct {
	open  func(ctx context.Context) clientv3.WatchChan
	tasks *tasks

	mu      sync.Mutex // guards what follows, and the streams that ever ran
	current *stream
}

// stream is a watch of etcd on all keys of the store.
type stream struct {
	cancel  context.CancelFunc
	settled chan struct{} // closed when etcd has confirmed it, or err is set
	err     error         // guarded by hub.mu until settled is closed
	watches map[string]map[*watch]struct{}
}

// watch is one caller's interest in a key.
type watch struct {
	name   string
	stream *stream
	freed  chan struct{}
}

var (
	errClosed = errors.New("the store was closed")
	errLost   = errors.New("the watch was lost")
)

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

// start starts a stream. h.mu is held.
func (h *hub) start() *stream {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(context.Background()))
	st := &stream{cancel: cancel, settled: make(chan struct{}), watches: map[string]map[*watch]struct{}{}}
	h.tasks.run(func() {
		err := h.follow(ctx, st)
		h.mu.Lock()
		defer h.mu.Unlock()
		h.drop(st, err)
	})
	return st
}

// follow wakes those who watch until the stream ends. The client makes a broken
// connection anew and goes on from the last event, so the end of the stream means
// that etcd has no leader, or has forgotten what happened meanwhile.
func (h *hub) follow(ctx context.Context, st *stream) error {
	for answer := range h.open(ctx) {
		if err := answer.Err(); err != nil {
			return err
		}
		h.mu.Lock()
		if answer.Created && !st.isSettled() {
			close(st.settled)
		}
		for _, event := range answer.Events {
			st.wake(string(event.Kv.Key))
		}
		h.mu.Unlock()
	}
	return errLost
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

func (st *stream) isSettled() bool {
	select {
	case <-st.settled:
		return true
	default:
		return false
	}
}

// wake signals all who watch the name. A channel that is full already says the same.
// hub.mu is held.
func (st *stream) wake(name string) {
	for w := range st.watches[name] {
		select {
		case w.freed <- struct{}{}:
		default:
		}
	}
}
