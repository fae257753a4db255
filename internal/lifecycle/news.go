package lifecycle

import (
	"fmt"

	"github.com/lockfx/lockfx"
)

// news keeps events in the order in which they happened until they are told
// outside of the mutex, by one goroutine at a time. Guarded by Machine.mu.
type news struct {
	queue   []lockfx.Event
	telling bool
}

// announce queues an event about h, which may be nil. m.mu is held.
func (m *Machine) announce(h *Hold, e lockfx.Event) {
	if len(m.cfg.Observers) == 0 && m.cfg.OnLost == nil {
		return
	}
	e.At, e.Lock, e.Key = m.cfg.Clock.Now(), m.cfg.Name, m.cfg.Key
	if h != nil {
		e.Token = h.token
		if e.Kind == lockfx.EventLost || e.Kind == lockfx.EventReleased {
			e.HeldFor = e.At.Sub(h.since)
		}
	}
	m.news.queue = append(m.news.queue, e)
}

// tell calls the observers with what is queued. An observer may use the lock: what
// that adds is told by the call that is already telling.
func (m *Machine) tell() {
	m.mu.Lock()
	if m.news.telling || len(m.news.queue) == 0 {
		m.mu.Unlock()
		return
	}
	m.news.telling = true
	defer func() { // also when an observer ends the goroutine
		m.news.telling = false
		m.mu.Unlock()
	}()
	for len(m.news.queue) > 0 {
		batch := m.news.queue
		m.news.queue = nil
		m.mu.Unlock()
		m.tellAll(batch)
		m.mu.Lock()
	}
}

func (m *Machine) tellAll(batch []lockfx.Event) {
	for _, e := range batch {
		for _, observe := range m.cfg.Observers {
			m.contain(e, func() { observe(e) })
		}
		if e.Kind == lockfx.EventLost && m.cfg.OnLost != nil {
			m.contain(e, func() { m.cfg.OnLost(e.Reason) })
		}
	}
}

// contain calls f and turns its panic into an event, unless e is such an event
// itself: an observer that always panics must not keep us busy for ever.
func (m *Machine) contain(e lockfx.Event, f func()) {
	defer func() {
		r := recover()
		if r == nil || e.Kind == lockfx.EventCallbackPanicked {
			return
		}
		m.mu.Lock()
		m.announce(nil, lockfx.Event{
			Kind:  lockfx.EventCallbackPanicked,
			Token: e.Token,
			Err:   fmt.Errorf("callback for %q panicked: %v", e.Kind.String(), r),
		})
		m.mu.Unlock()
	}()
	f()
}
