package queue_test

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/lifecycle"
	"github.com/lockfx/lockfx/internal/queue"
)

// plant is a fault that a schedule must notice.
type plant struct {
	name  string
	line  func(line) line
	store func(lockfx.Store) lockfx.Store
	fault string // what is noticed
}

var plants = []plant{
	{name: "a line forgets a waiter", line: func(l line) line { return &forgetful{line: l} }, fault: "overtook another"},
	{name: "a try overtakes", line: func(l line) line { return pushy{l} }, fault: "overtook another"},
	{name: "a waiter does not leave", line: func(l line) line { return stubborn{l} }, fault: "after the end of its waiting"},
	{name: "a waiter is turned away", line: func(l line) line { return impatient{l} }, fault: "was turned away"},
	{name: "a body begins on an old lease", line: func(l line) line { return slow{l} }, fault: "left was handed out"},
	{
		name:  "the watch begins after the refusal, and nobody looks again",
		store: func(s lockfx.Store) lockfx.Store { return &noSecondLook{worldStore: s.(*worldStore)} },
		fault: "had been free for",
	},
	{name: "a signal is lost", store: func(s lockfx.Store) lockfx.Store { return deaf{s.(*worldStore)} }, fault: "had been free for"},
	{name: "watches are not stopped", store: func(s lockfx.Store) lockfx.Store { return leaky{s.(*worldStore)} }, fault: "watches are left"},
}

// The planted faults.
type (
	forgetful struct {
		line
		n atomic.Int64
	}
	pushy        struct{ line }
	stubborn     struct{ line }
	impatient    struct{ line }
	slow         struct{ line }
	noSecondLook struct {
		*worldStore
		again bool
	}
	deaf  struct{ *worldStore }
	leaky struct{ *worldStore }
)

func (l *forgetful) Run(ctx context.Context, r queue.Request, body queue.Body) error {
	if l.n.Add(1)%5 == 0 && r.Limit != 0 && !l.Idle() {
		for range 100 { // until everybody else has left, so that the schedule ends
			time.Sleep(ttl)
		}
	}
	return l.line.Run(ctx, r, body)
}

func (l pushy) Run(ctx context.Context, r queue.Request, body queue.Body) error {
	if r.Limit == 0 {
		return r.Machine.RunOn(ctx, r.Terms, body)
	}
	return l.line.Run(ctx, r, body)
}

func (l stubborn) Run(ctx context.Context, r queue.Request, body queue.Body) error {
	return l.line.Run(context.WithoutCancel(ctx), r, body)
}

func (l impatient) Run(ctx context.Context, r queue.Request, body queue.Body) error {
	if r.Limit > 0 {
		r.Limit /= 2
	}
	return l.line.Run(ctx, r, body)
}

func (l slow) Run(ctx context.Context, r queue.Request, body queue.Body) error {
	return l.line.Run(ctx, r, func(ctx context.Context, h *lifecycle.Hold) error {
		time.Sleep(time.Until(h.Deadline()) / 3)
		return body(ctx, h)
	})
}

// noSecondLook does not look again right after a watch has begun.
func (s *noSecondLook) Watch(ctx context.Context, k string) (<-chan struct{}, func(), error) {
	s.set(func() { s.again = true })
	return s.worldStore.Watch(ctx, k)
}

func (s *noSecondLook) Acquire(ctx context.Context, k string, d time.Duration) (lockfx.Grant, error) {
	again := false
	s.set(func() { again, s.again = s.again, false })
	if again {
		return lockfx.Grant{RetryAfter: d}, nil
	}
	return s.worldStore.Acquire(ctx, k, d)
}

func (s deaf) Watch(ctx context.Context, k string) (<-chan struct{}, func(), error) {
	_, stop, err := s.worldStore.Watch(ctx, k)
	return make(chan struct{}), stop, err
}

func (s leaky) Watch(ctx context.Context, k string) (<-chan struct{}, func(), error) {
	freed, stop, err := s.worldStore.Watch(ctx, k)
	if err == nil {
		go func() { time.Sleep(20 * 3 * ttl); stop() }()
	}
	return freed, func() {}, err
}
