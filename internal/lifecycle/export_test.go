package lifecycle

import "github.com/lockfx/lockfx"

// What only the tests see from outside.

var (
	Margin  = margin
	Passed  = passed
	BackOff = backOff
	Moves   = moves

	ErrNoTimer   = errNoTimer
	ErrNoWatcher = errNoWatcher
	ErrNoSignals = errNoSignals
)

// Force moves m, which is in no state of interest, to from and then to to.
func (m *Machine) Force(from, to lockfx.State) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state.Store(uint32(from))
	m.move(nil, to)
}
