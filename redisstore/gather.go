package redisstore

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/storekit"
)

// gatherer brings the renewals of many locks together: those that come while another is
// under way leave with one request, when that is answered or has taken longer than
// promptly. So a renewal alone does not wait, and a thousand heartbeats at one moment are
// a few requests.
type gatherer struct {
	send  func(context.Context, []lockfx.Renewal) []lockfx.Result
	tasks *storekit.Tasks

	mu      sync.Mutex // guards what follows
	since   time.Time  // when the last request left; zero while none is under way
	waiting []*pending
	timer   *time.Timer // sends those that wait at the latest; nil while none does
}

// pending is a renewal that waits for others.
type pending struct {
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
		defer g.flush()
		return alone()
	}
	p := &pending{r, ctx, make(chan lockfx.Result, 1)}
	g.waiting = append(g.waiting, p)
	if g.timer == nil {
		g.timer = time.AfterFunc(promptly, g.flush)
	}
	g.mu.Unlock()
	select {
	case result := <-p.result:
		if result.Err == nil || ctx.Err() == nil {
			return result.OK, result.Err
		}
	case <-ctx.Done():
	}
	return false, storekit.Ended(ctx, "renew", r.Key)
}

// flush sends those that wait.
func (g *gatherer) flush() {
	g.mu.Lock()
	waiting := g.waiting
	g.waiting, g.since = nil, time.Time{}
	if g.timer != nil {
		g.timer.Stop()
		g.timer = nil
	}
	if len(waiting) > 0 {
		g.since = time.Now()
	}
	g.mu.Unlock()
	if len(waiting) == 0 {
		return
	}
	g.tasks.Go(func() {
		defer g.flush()
		g.sendAll(waiting)
	})
}

// sendAll sends one request for those whose callers still wait. It lasts as long as the
// most patient of them allows: the others leave when their own ctx ends.
func (g *gatherer) sendAll(waiting []*pending) {
	waiting = slices.DeleteFunc(waiting, func(p *pending) bool { return p.ctx.Err() != nil })
	if len(waiting) == 0 {
		return
	}
	renewals := make([]lockfx.Renewal, len(waiting))
	latest, bounded := time.Time{}, true
	for i, p := range waiting {
		renewals[i] = p.Renewal
		end, ok := p.ctx.Deadline()
		if bounded = bounded && ok; end.After(latest) {
			latest = end
		}
	}
	ctx := context.WithoutCancel(waiting[0].ctx)
	if bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, latest)
		defer cancel()
	}
	for i, result := range g.send(ctx, renewals) {
		waiting[i].result <- result
	}
}
