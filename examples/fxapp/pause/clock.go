package pause

import (
	"slices"
	"time"

	"github.com/lockfx/lockfx"
)

var _ lockfx.Clock = (*Process)(nil)

// Now returns the present time, which a stop does not change: what asks after it
// learns how late it is.
func (p *Process) Now() time.Time { return time.Now() }

// AfterFunc calls f once d has passed, but not while the process is stopped.
func (p *Process) AfterFunc(d time.Duration, f func()) lockfx.Timer {
	t := &timer{process: p, f: f}
	t.Timer = time.AfterFunc(d, t.fire)
	return t
}

type timer struct {
	*time.Timer
	process *Process
	f       func()
}

func (t *timer) fire() {
	if t.process.begin(t) {
		t.call()
	}
}

// call is to be preceded by a count of the call.
func (t *timer) call() {
	defer t.process.end()
	t.f()
}

// Stop keeps the timer from firing, also when it is overdue.
func (t *timer) Stop() bool { return t.process.cancel(t) || t.Timer.Stop() }

func (p *Process) freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
}

// thaw lets timers fire again, the overdue ones at once.
func (p *Process) thaw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = false
	for _, t := range p.overdue {
		p.calls++
		go t.call()
	}
	p.overdue = nil
}

// begin counts a call of t, or puts t off if the process is stopped.
func (p *Process) begin(t *timer) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		p.overdue = append(p.overdue, t)
		return false
	}
	p.calls++
	return true
}

func (p *Process) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calls--; p.calls == 0 {
		p.idle.Broadcast()
	}
}

func (p *Process) cancel(t *timer) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.overdue, t)
	if i < 0 {
		return false
	}
	p.overdue = slices.Delete(p.overdue, i, i+1)
	return true
}
