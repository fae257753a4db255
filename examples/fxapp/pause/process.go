// Package pause stands in for what stops a whole process for a while: SIGSTOP, a
// suspended virtual machine, a long collection of garbage. Time goes on, and
// nothing of the process runs.
//
// The replicas of the example share one real process, so each has a [Process] of
// its own, which it gives to its lock as the clock. While that is stopped no timer
// of the lock fires: there is no heartbeat, and nobody notices that the lease runs
// out. The replica's own code stops at a [Process.Checkpoint].
package pause

import (
	"context"
	"sync"
	"sync/atomic"
)

// Process is a [lockfx.Clock] and a place where code waits. It is safe for concurrent
// use. Make one with [NewProcess].
type Process struct {
	next atomic.Pointer[Stop]

	mu      sync.Mutex // guards what follows
	stopped bool
	overdue []*timer   // in the order in which they came due
	calls   int        // callbacks of timers that run
	idle    *sync.Cond // calls is 0
}

// NewProcess returns a process that runs.
func NewProcess() *Process {
	p := new(Process)
	p.idle = sync.NewCond(&p.mu)
	return p
}

// Wait waits until no callback of a timer runs. One may outlive what armed its
// timer: it can be the one that still tells the observers of a lock what happened.
func (p *Process) Wait() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.calls > 0 {
		p.idle.Wait()
	}
}

// Stop is one stop of a process.
type Stop struct {
	reached chan struct{}
	resume  chan struct{}
	once    sync.Once
}

// StopAtCheckpoint makes the process stop at its next checkpoint.
func (p *Process) StopAtCheckpoint() *Stop {
	s := &Stop{reached: make(chan struct{}), resume: make(chan struct{})}
	p.next.Store(s)
	return s
}

// Reached returns a channel that closes when the process has stopped.
func (s *Stop) Reached() <-chan struct{} { return s.reached }

// Resume makes the process go on, or not stop at all. It may be called again.
func (s *Stop) Resume() { s.once.Do(func() { close(s.resume) }) }

// Checkpoint calls next and returns its error. If the process was told to stop, it
// stops first, until it is resumed or ctx ends. next is then the first thing that
// runs, before any timer: the worst of all cases, for next can't know of anything
// that happened meanwhile.
func (p *Process) Checkpoint(ctx context.Context, next func() error) error {
	s := p.next.Swap(nil)
	if s == nil {
		return next()
	}
	p.freeze()
	defer p.thaw()
	close(s.reached)
	select {
	case <-s.resume:
	case <-ctx.Done():
	}
	return next()
}
