// Package stop makes the stop of an application one notice to all its locks.
//
// fx stops one hook after the other. The first hook of a lock begins the stop for all of
// them: every run, campaign and waiter is cancelled at once, and each later hook only waits
// for its own. All of them wait with the context of the first, which ends a little before
// that of fx, so that there is time left to say what did not end.
//
// What goes wrong:
//
//   - the time of the stop is nearly over: leases that are still held are not renewed any
//     more, also where fx skips the hook of their lock;
//   - the application is started again: Restart forgets the stop before.
package stop

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/lockfx/lockfx/internal/lifecycle"
)

// Member is what one lock knows of the stop of its application. It is safe for concurrent
// use.
type Member struct {
	mu      sync.Mutex                // guards what follows
	machine func() *lifecycle.Machine // of the present start; nil until the lock is built
	wait    context.Context
	named   bool // a hook of this stop has returned what outlives it
}

// Join says what a stop needs of a lock that was built: its machine of the present start.
func (m *Member) Join(machine func() *lifecycle.Machine) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.machine = machine
}

// Begun returns the context of the stop under way, or nil.
func (m *Member) Begun() context.Context {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.wait
}

// Restart forgets an earlier stop.
func (m *Member) Restart() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wait, m.named = nil, false
}

// Once returns err, or nil if an error of the lock was returned before in this stop: what
// outlives it is named once.
func (m *Member) Once(err error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil || m.named {
		return nil
	}
	m.named = true
	return err
}

// Drain waits for what runs under the lock, if it is built.
func (m *Member) Drain(ctx context.Context) error {
	m.mu.Lock()
	machine := m.machine
	m.mu.Unlock()
	if machine == nil {
		return nil
	}
	return m.Once(machine().Drain(ctx))
}

// begin notifies the lock, if it is built, and returns its machine.
func (m *Member) begin(wait context.Context) *lifecycle.Machine {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.machine == nil {
		return nil
	}
	m.wait = wait
	machine := m.machine()
	machine.BeginDispose()
	return machine
}

// All are the members of an application.
type All []*Member

// Begin notifies all locks that the application stops, and returns the context that their
// hooks wait with. It ends a little before ctx: when ctx is over, fx says nothing but that,
// and skips what is left. What has not ended by then is not renewed any more, also where fx
// skips its hook.
func (all All) Begin(ctx context.Context) context.Context {
	wait, cancel := ctx, func() {}
	if end, limited := ctx.Deadline(); limited {
		left := time.Until(end)
		left -= Spare(left)
		wait, cancel = context.WithDeadlineCause(ctx, time.Now().Add(left), fmt.Errorf(
			"%w: the stop leaves %v for runs to end, see fx.StopTimeout", context.DeadlineExceeded, left.Round(time.Millisecond)))
	}
	var machines []*lifecycle.Machine // of this start: the next one makes others
	for _, m := range all {
		if machine := m.begin(wait); machine != nil {
			machines = append(machines, machine)
		}
	}
	context.AfterFunc(wait, func() {
		cancel()
		for _, m := range machines {
			m.Abandon(wait)
		}
	})
	return wait
}

// Spare is the part of the time that is left of a start or a stop which is kept to say what
// did not end: a twentieth, and a second at most.
func Spare(left time.Duration) time.Duration { return min(left/20, time.Second) }
