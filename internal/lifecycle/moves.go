package lifecycle

import (
	"fmt"

	"github.com/lockfx/lockfx"
)

// moves is the state machine: from each state, where it may go. A move that is
// not in it is a bug of this package.
var moves = map[lockfx.State][]lockfx.State{
	lockfx.StateIdle:      {lockfx.StateAcquiring, lockfx.StateReleased},
	lockfx.StateAcquiring: {lockfx.StateIdle, lockfx.StateHeld, lockfx.StateReleased},
	lockfx.StateHeld:      {lockfx.StateReleasing, lockfx.StateLost},
	lockfx.StateReleasing: {lockfx.StateReleased},
	lockfx.StateLost:      {lockfx.StateReleased},
	lockfx.StateReleased:  {lockfx.StateAcquiring},
}

// acquirable reports whether an acquisition can begin in state.
func acquirable(state lockfx.State) bool {
	return state == lockfx.StateIdle || state == lockfx.StateReleased
}

// Vacant returns a channel that closes as soon as nothing is held or asked for. It
// says so once: somebody else may be faster.
func (m *Machine) Vacant() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	vacant := m.vacant
	if vacant == nil {
		vacant = make(chan struct{})
	}
	if acquirable(m.State()) {
		close(vacant)
	} else {
		m.vacant = vacant
	}
	return vacant
}

// move puts the machine, and the hold that it is about, into the state to.
// m.mu is held.
func (m *Machine) move(h *Hold, to lockfx.State) {
	from := m.State()
	for _, legal := range moves[from] {
		if legal == to {
			m.state.Store(uint32(to))
			if h != nil {
				h.state.Store(uint32(to))
			}
			if m.vacant != nil && acquirable(to) {
				close(m.vacant)
				m.vacant = nil
			}
			return
		}
	}
	panic(fmt.Sprintf("lockfx: illegal move of %q from %v to %v", m.cfg.Key, from, to))
}
