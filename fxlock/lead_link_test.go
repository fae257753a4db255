package fxlock_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

// state of a link.
type linkState int

const (
	open    linkState = iota
	refuses           // each call fails at once
	silent            // requests are lost
	deaf              // requests arrive, answers are lost
	slow              // both take their time
	linkStates
)

// link is a replica's way to a memory store. It is a store itself.
type link struct {
	store *fxlock.MemoryStore
	delay time.Duration // of a request, and of an answer, while slow

	mu      sync.Mutex // guards what follows
	state   linkState
	changed chan struct{} // closed at the next change
}

var (
	_ lockfx.Watcher = (*link)(nil)

	errRefused = errors.New("connection refused")
)

func newLink(store *fxlock.MemoryStore) *link {
	return &link{store: store, delay: 200 * time.Millisecond, changed: make(chan struct{})}
}

func (l *link) set(state linkState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state = state
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *link) now() (linkState, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state, l.changed
}

// over sends a request over the link, and brings its answer back.
func over[A any](ctx context.Context, l *link, request func(context.Context) (A, error)) (answer A, err error) {
	state, _ := l.now()
	switch state {
	case refuses:
		return answer, errRefused
	case silent:
		<-ctx.Done()
		return answer, ctx.Err()
	case slow:
		time.Sleep(l.delay)
	}
	arrived := context.WithoutCancel(ctx)
	answer, err = request(arrived)
	switch state, _ := l.now(); state { // the way back
	case deaf, silent:
		<-ctx.Done()
		return *new(A), ctx.Err()
	case slow:
		time.Sleep(l.delay)
	}
	return answer, err
}

func (l *link) Acquire(ctx context.Context, k string, d time.Duration) (lockfx.Grant, error) {
	return over(ctx, l, func(ctx context.Context) (lockfx.Grant, error) { return l.store.Acquire(ctx, k, d) })
}

func (l *link) Renew(ctx context.Context, k string, token lockfx.Token, d time.Duration) (bool, error) {
	return over(ctx, l, func(ctx context.Context) (bool, error) { return l.store.Renew(ctx, k, token, d) })
}

func (l *link) Release(ctx context.Context, k string, token lockfx.Token) (bool, error) {
	return over(ctx, l, func(ctx context.Context) (bool, error) { return l.store.Release(ctx, k, token) })
}

// Watch passes signals on until the link changes: the watch is lost then.
func (l *link) Watch(ctx context.Context, k string) (<-chan struct{}, func(), error) {
	state, changed := l.now()
	switch state {
	case refuses:
		return nil, nil, errRefused
	case silent, deaf:
		<-ctx.Done()
		return nil, nil, ctx.Err()
	}
	inner, stop, err := l.store.Watch(ctx, k)
	if err != nil {
		return nil, nil, err
	}
	freed, done := make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(freed)
		for {
			select {
			case <-done:
				return
			case <-changed:
				return
			case <-inner:
				select {
				case freed <- struct{}{}:
				default:
				}
			}
		}
	}()
	return freed, sync.OnceFunc(func() { stop(); close(done) }), nil
}

// stallingClock is the clock of a process that can be paused, and whose quartz runs
// at a rate of its own. While it is paused no timer fires.
type stallingClock struct {
	base time.Time
	rate float64

	mu      sync.Mutex // guards what follows
	stalled bool
	overdue []*stallingTimer
}

type stallingTimer struct {
	*time.Timer
	clock *stallingClock
	f     func()
	off   bool // stopped; guarded by clock.mu
}

func newStallingClock(rate float64) *stallingClock {
	return &stallingClock{base: time.Now(), rate: rate}
}

func (c *stallingClock) Now() time.Time {
	return c.base.Add(time.Duration(float64(time.Since(c.base)) * c.rate))
}

func (c *stallingClock) AfterFunc(d time.Duration, f func()) lockfx.Timer {
	t := &stallingTimer{clock: c, f: f}
	t.Timer = time.AfterFunc(time.Duration(float64(d)/c.rate)+1, func() { // never early
		if !c.putOff(t) {
			f()
		}
	})
	return t
}

// putOff keeps a timer that is due until the clock goes on, if it is stalled.
func (c *stallingClock) putOff(t *stallingTimer) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stalled {
		c.overdue = append(c.overdue, t)
	}
	return c.stalled
}

func (t *stallingTimer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	t.off = true
	return t.Timer.Stop()
}

func (c *stallingClock) stall(yes bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stalled = yes
	if yes {
		return
	}
	for _, t := range c.overdue {
		if !t.off {
			go t.f()
		}
	}
	c.overdue = nil
}
