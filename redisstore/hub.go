package redisstore

import (
	"context"
	"errors"
	"sync"

	"github.com/redis/go-redis/v9"
)

// hub has the watches of a store. While there is one, it runs a subscription.
type hub struct {
	subscribe func(ctx context.Context, channels ...string) *redis.PubSub
	tasks     *tasks

	mu      sync.Mutex // guards what follows, and the subscriptions that ever ran
	current *subscription
}

// topic is a channel of the server that is watched.
type topic struct {
	name    string
	watches map[*watch]struct{}
	settled chan struct{} // closed when the server has confirmed it, or err is set
	err     error         // guarded by hub.mu until settled is closed
}

// watch is one caller's interest in a topic.
type watch struct {
	topic *topic
	sub   *subscription
	freed chan struct{}
}

var errClosed = errors.New("the store was closed")

// watch adds a watch, and starts a subscription with the first. The topic settles
// later.
func (h *hub) watch(name string) *watch {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.current == nil {
		h.current = h.start()
	}
	sub := h.current
	t, ok := sub.topics[name]
	if !ok {
		t = &topic{name: name, watches: map[*watch]struct{}{}, settled: make(chan struct{})}
		sub.topics[name] = t
		if sub.wire[name] { // from an earlier watch, and not given up yet
			close(t.settled)
		}
		sub.poke()
	}
	w := &watch{topic: t, sub: sub, freed: make(chan struct{}, 1)}
	t.watches[w] = struct{}{}
	return w
}

// unwatch removes a watch, and ends the subscription with the last. It is called
// once for each watch; the subscription may have been lost before.
func (h *hub) unwatch(w *watch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(w.topic.watches, w)
	if len(w.topic.watches) > 0 || w.sub.topics[w.topic.name] != w.topic {
		return
	}
	delete(w.sub.topics, w.topic.name)
	w.sub.poke()
	if len(w.sub.topics) == 0 {
		h.drop(w.sub, errClosed)
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

// drop ends a subscription: whoever still waits for it to settle gets err, and the
// channels of the others are closed. h.mu is held.
func (h *hub) drop(sub *subscription, err error) {
	sub.cancel()
	if h.current == sub {
		h.current = nil
	}
	for name, t := range sub.topics {
		delete(sub.topics, name)
		if !t.isSettled() {
			t.err = err
			close(t.settled)
		}
		for w := range t.watches {
			close(w.freed)
		}
	}
}

func (t *topic) isSettled() bool {
	select {
	case <-t.settled:
		return true
	default:
		return false
	}
}

// wake signals all who watch the topic. A channel that is full already says the
// same. hub.mu is held.
func (t *topic) wake() {
	for w := range t.watches {
		select {
		case w.freed <- struct{}{}:
		default:
		}
	}
}
