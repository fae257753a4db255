package lifecycle

import (
	"fmt"

	"github.com/lockfx/lockfx"
)

// maxQueued is how many events wait for a slow callback before more are dropped. Losses
// are dropped from twice as many on.
const maxQueued = 1024

// events are queued under the mutex, in the order in which they happened. The callbacks
// are called outside of it, by one goroutine at a time. Guarded by Machine.mu.
type events struct {
	queue     []lockfx.Event
	called    int  // callbacks that were called with queue[0]
	notifying bool // a goroutine is at it
}

// announce queues an event about h, which may be nil. m.mu is held.
func (m *Machine) announce(h *Hold, e lockfx.Event) {
	if len(m.callbacks) == 0 {
		return
	}
	e.At, e.Lock, e.Key = m.cfg.Clock.Now(), m.cfg.Name, m.cfg.Key
	if h != nil {
		e.Token, e.Gate = h.token, h.terms.Gate
		if e.Kind == lockfx.EventLost || e.Kind == lockfx.EventReleased {
			e.HeldFor = e.At.Sub(h.since)
		}
	}
	m.events.add(e)
}

func (q *events) add(e lockfx.Event) {
	n := len(q.queue)
	if n < maxQueued || e.Kind == lockfx.EventLost && n < 2*maxQueued {
		q.queue = append(q.queue, e)
		return
	}
	if q.queue[n-1].Kind != lockfx.EventsDropped {
		q.queue = append(q.queue, lockfx.Event{Kind: lockfx.EventsDropped, At: e.At, Lock: e.Lock, Key: e.Key})
		n++
	}
	q.queue[n-1].Dropped++
}

// Announce calls the callbacks with an event that is no transition of m.
func (m *Machine) Announce(e lockfx.Event) {
	m.mu.Lock()
	defer m.unlock()
	m.announce(nil, e)
}

// unlock releases m.mu and calls the callbacks with what happened under it, unless another
// goroutine is at that.
func (m *Machine) unlock() {
	begin := !m.events.notifying && len(m.events.queue) > 0
	if begin {
		m.events.notifying = true
	}
	m.mu.Unlock()
	if begin {
		m.notify(mostByCaller)
	}
}

// deliver calls the callbacks with what is queued.
func (m *Machine) deliver() {
	m.mu.Lock()
	m.unlock()
}

const (
	// mostByCaller is how many events a caller of the lock sees to: its own, and some that
	// happen meanwhile. Callers are not kept for what others do.
	mostByCaller = 10
	// everything makes notify go on until no event is left.
	everything = -1
)

// notify calls the callbacks with n events. What is left then, also because a callback
// ended this goroutine, is for a goroutine that does nothing else.
func (m *Machine) notify(n int) {
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if len(m.events.queue) > 0 {
			go m.notify(everything) // it ends with the queue
			return
		}
		m.events.queue, m.events.notifying = nil, false
	}()
	for {
		e, callback := m.next(&n)
		if callback == nil {
			return
		}
		m.contain(e, callback)
	}
}

// next returns a callback and what to call it with, or nil when nothing is left to do
// here. A caller leaves a loss during a run to the goroutine that does nothing else: OnLost
// may wait for the run, and this may be the run's own goroutine.
func (m *Machine) next(n *int) (lockfx.Event, func(lockfx.Event)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	q := &m.events
	if q.called == len(m.callbacks) {
		q.queue, q.called = q.queue[1:], 0
		*n--
	}
	if *n == 0 || len(q.queue) == 0 || *n > 0 && m.inUse && q.queue[0].Kind == lockfx.EventLost {
		return lockfx.Event{}, nil
	}
	q.called++
	return q.queue[0], m.callbacks[q.called-1]
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
