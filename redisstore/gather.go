package redisstore

import (
	"context"
	"sync"
	"time"

	"github.com/lockfx/lockfx"
)

// gatherer brings the renewals of many locks together: those that come while another is
// under way leave with one request, when that is answered or has taken longer than
// promptly. So a renewal alone waits for nobody, and a thousand heartbeats at one moment
// are a few requests.
type gatherer struct {
	send  func(context.Context, []lockfx.Renewal) []lockfx.Result
	tasks *tasks

	mu      sync.Mutex // guards what follows
	since   time.Time  // when the last request left; zero while none is under way
	waiting []*passenger
	timer   *time.Timer // sends those who wait at the latest; nil while nobody does
}

// passenger is a renewal that waits for others.
type passenger struct {
	lockfx.Renewal
	ctx    context.Context
	result chan lockfx.Result // of capacity 1
}

// renew does alone, or sends r with others. It returns when ctx ends.
func (g *gatherer) renew(ctx context.Context, r lockfx.Renewal, alone func() (bool, error)) (bool, error) {
	g.mu.Lock()
	if g.since.IsZero() || time.Since(g.since) > promptly {
		g.since = time.Now()
		g.mu.Unlock()
		defer g.depart()
		return alone()
	}
	p := &passenger{r, ctx, make(chan lockfx.Result, 1)}
	g.waiting = append(g.waiting, p)
	if g.timer == nil {
		g.timer = time.AfterFunc(promptly, g.depart)
	}
	g.mu.Unlock()
	select {
	case result := <-p.result:
		return result.OK, result.Err
	case <-ctx.Done():
		return false, ended(ctx, "renew", r.Key)
	}
}

// depart sends those who wait.
func (g *gatherer) depart() {
	g.mu.Lock()
	passengers := g.waiting
	g.waiting, g.since = nil, time.Time{}
	if g.timer != nil {
		g.timer.Stop()
		g.timer = nil
	}
	if len(passengers) > 0 {
		g.since = time.Now()
	}
	g.mu.Unlock()
	if len(passengers) == 0 {
		return
	}
	g.tasks.run(func() {
		defer g.depart()
		g.carry(passengers)
	})
}

// carry sends one request for all passengers, but for those who have left. It lasts as
// long as the most patient of them allows: the others leave when their own ctx ends.
func (g *gatherer) carry(passengers []*passenger) {
	var renewals []lockfx.Renewal
	var aboard []*passenger
	latest, bounded := time.Time{}, true
	for _, p := range passengers {
		if p.ctx.Err() != nil {
			continue
		}
		renewals, aboard = append(renewals, p.Renewal), append(aboard, p)
		end, ok := p.ctx.Deadline()
		if bounded = bounded && ok; end.After(latest) {
			latest = end
		}
	}
	if len(aboard) == 0 {
		return
	}
	ctx := context.WithoutCancel(aboard[0].ctx)
	if bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, latest)
		defer cancel()
	}
	for i, result := range g.send(ctx, renewals) {
		aboard[i].result <- result
	}
}
