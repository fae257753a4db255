package lifecycle

import (
	"fmt"

	"github.com/lockfx/lockfx"
)

// news keeps events in the order in which they happened until they are told
// outside of the mutex, by one goroutine at a time. Guarded by Machine.mu.
type news struct {
	queue   []lockfx.Event
	heard   int // callbacks that were called with queue[0]
	telling bool
}

// announce queues an event about h, which may be nil. m.mu is held.
func (m *Machine) announce(h *Hold, e lockfx.Event) {
	if len(m.callbacks) == 0 {
		return
	}
	e.At, e.Lock, e.Key = m.cfg.Clock.Now(), m.cfg.Name, m.cfg.Key
	if h != nil {
		e.Token, e.Note = h.token, h.terms.Note
		if e.Kind == lockfx.EventLost || e.Kind == lockfx.EventReleased {
			e.HeldFor = e.At.Sub(h.since)
		}
	}
	m.news.queue = append(m.news.queue, e)
}

// Announce tells the callbacks of an event that is no transition of m.
func (m *Machine) Announce(e lockfx.Event) {
	m.mu.Lock()
	defer m.unlock()
	m.announce(nil, e)
}

// tell calls the callbacks with what is queued. A callback may use the lock: what
// that adds is told by the call that is already telling.
func (m *Machine) tell() {
	if m.beginTelling() {
		m.tellAll(false)
	}
}

// tellBeforeBody is tell for the goroutine of a run, which leaves a loss and what
// follows to another one: OnLost may wait for the run to end.
func (m *Machine) tellBeforeBody() {
	if m.beginTelling() {
		m.tellAll(true)
	}
}

func (m *Machine) beginTelling() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.news.telling || len(m.news.queue) == 0 {
		return false
	}
	m.news.telling = true
	return true
}

func (m *Machine) tellAll(beforeBody bool) {
	told := false
	defer func() {
		if !told { // a callback ended this goroutine: the others hear all the same
			m.tellAll(beforeBody)
		}
	}()
	for {
		e, callback := m.next(beforeBody)
		if callback == nil {
			break
		}
		m.contain(e, callback)
	}
	told = true
}

// next returns a callback and what to call it with, or nil when there is nothing
// left to tell here.
func (m *Machine) next(beforeBody bool) (lockfx.Event, func(lockfx.Event)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := &m.news
	if n.heard == len(m.callbacks) {
		n.queue, n.heard = n.queue[1:], 0
	}
	if len(n.queue) == 0 {
		n.queue, n.telling = nil, false
		return lockfx.Event{}, nil
	}
	e := n.queue[0]
	if beforeBody && e.Kind == lockfx.EventLost {
		go m.tellAll(false)
		return e, nil
	}
	n.heard++
	return e, m.callbacks[n.heard-1]
}

// contain calls back and turns a panic into an event, unless e is such an event
// itself: an observer that always panics must not keep us busy for ever.
func (m *Machine) contain(e lockfx.Event, callback func(lockfx.Event)) {
	defer func() {
		r := recover()
		if r == nil || e.Kind == lockfx.EventCallbackPanicked {
			return
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.announce(nil, lockfx.Event{
			Kind:  lockfx.EventCallbackPanicked,
			Token: e.Token,
			Err:   fmt.Errorf("callback for %q panicked: %v", e.Kind.String(), r),
		})
	}()
	callback(e)
}
