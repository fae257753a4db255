package storetest_test

import (
	"context"
	"errors"
	"sync"
	"time"
)

// network is between a client and its engine.
type network struct {
	mu   sync.Mutex // guards what follows
	down bool       // nothing arrives
	mute bool       // requests arrive, and answers do not
	hold *func()    // where the next request goes instead of its engine
}

var errDown = errors.New("no route to the engine")

// attempt is how long a client waits for an answer before it sends the request again.
const attempt = 20 * time.Millisecond

// ask sends a request until there is an answer. A request may arrive more than once.
func ask[A any](ctx context.Context, e *engine, request func() A) (answer A, err error) {
	n := &e.network
	for {
		n.mu.Lock()
		down, mute, held := n.down, n.mute, n.hold != nil
		if held && !down {
			*n.hold, n.hold = func() { request() }, nil
		}
		n.mu.Unlock()
		switch {
		case down:
			if e.has("an outage loses the watches") {
				e.deafen()
			}
			return answer, errDown
		case held:
		case mute:
			request()
		default:
			return request(), nil
		}
		select {
		case <-ctx.Done():
			switch {
			case e.has("a call outlives its context"):
				time.Sleep(10 * time.Second)
			case e.has("the end of a context is a plain error"):
				return answer, errDown
			}
			return answer, context.Cause(ctx)
		case <-time.After(attempt):
		}
	}
}

// set sets a flag of n until heal is called.
func (n *network) set(flag *bool) (heal func(), err error) {
	put := func(v bool) {
		n.mu.Lock()
		defer n.mu.Unlock()
		*flag = v
	}
	put(true)
	return func() { put(false) }, nil
}

// holdNext keeps back the next request.
func (n *network) holdNext() (deliver func(), err error) {
	held := func() {}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hold = &held
	return func() {
		n.mu.Lock()
		n.hold = nil
		late := held
		n.mu.Unlock()
		late()
	}, nil
}
