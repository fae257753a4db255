package main

import (
	"context"
	"sync"
	"time"

	"github.com/lockfx/lockfx"
)

// process stands for a process that is paused whole, as SIGSTOP or a suspended machine does
// it. It is the clock of the replica's lock: while it is paused no timer fires, so there is
// no heartbeat, while time goes on.
type process struct {
	mu   sync.Mutex // guards next
	next *pause
}

// pause begins right before the next write of the replica, behind its last look at the
// lease.
type pause struct{ begun, over chan struct{} }

func (p *process) pauseAtWrite() *pause {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next = &pause{make(chan struct{}), make(chan struct{})}
	return p.next
}

func (p *process) resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.next.over)
	p.next = nil
}

// pauseHere begins the pause that is due, and waits for its end.
func (p *process) pauseHere() {
	p.mu.Lock()
	due := p.next
	p.mu.Unlock()
	if due != nil {
		close(due.begun)
		<-due.over
	}
}

// standStill waits for the end of the pause, if it has begun.
func (p *process) standStill() {
	p.mu.Lock()
	due := p.next
	p.mu.Unlock()
	if due == nil {
		return
	}
	select {
	case <-due.begun:
		<-due.over
	default:
	}
}

// Now and AfterFunc make a process a [lockfx.Clock].
func (p *process) Now() time.Time { return time.Now() }

func (p *process) AfterFunc(d time.Duration, f func()) lockfx.Timer {
	return time.AfterFunc(d, func() {
		p.standStill()
		f()
	})
}

// pausable is a sink in front of which its process can be paused.
type pausable struct {
	sink
	process *process
}

func (s pausable) Write(ctx context.Context, fence lockfx.Token, text string) error {
	s.process.pauseHere()
	return s.sink.Write(ctx, fence, text)
}
