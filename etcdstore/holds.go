package etcdstore

import (
	"sync"
	"time"

	"github.com/lockfx/lockfx"
)

// hold is one acquisition.
type hold struct {
	name  string
	token lockfx.Token
}

// holds knows the leases of the acquisitions that went through this store, so that a
// renewal need not ask first. It decides nothing.
type holds struct {
	mu    sync.Mutex // guards what follows
	of    map[hold]lease
	sweep int // sweep when there are more
}

func (h *holds) put(of hold, l lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.of == nil || len(h.of) > h.sweep {
		h.compact()
	}
	h.of[of] = l
}

// compact drops what was abandoned: such a lease has long ended. h.mu is held.
func (h *holds) compact() {
	live := make(map[hold]lease, len(h.of))
	for of, l := range h.of {
		if time.Since(l.since)/time.Second <= 2*time.Duration(l.seconds) {
			live[of] = l
		}
	}
	h.of, h.sweep = live, max(64, 2*len(live))
}

func (h *holds) get(of hold) (lease, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l, ok := h.of[of]
	return l, ok
}

func (h *holds) take(of hold) (lease, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l, ok := h.of[of]
	delete(h.of, of)
	return l, ok
}
