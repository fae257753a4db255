package memoize

import (
	"bytes"
	"context"
	"runtime"
	"strconv"
	"sync"
)

// node is a flight as a part of the graph of who waits for whom. A call that would
// close a circle in it is refused.
type node struct {
	waitsFor map[*node]int // how many calls made within this flight wait for that one
	outer    *node         // the flight that this one interrupts on its goroutine
}

var graph struct {
	sync.Mutex                  // guards what follows, and all nodes; nothing is locked under it
	running    map[uint64]*node // the innermost flight of each goroutine that runs one
}

type nodeKey struct{}

func withFlight(ctx context.Context, n *node) context.Context {
	return context.WithValue(ctx, nodeKey{}, n)
}

// flightsOf returns the flights that a call with ctx on this goroutine is made within:
// at most one by ctx, and at most one by the goroutine.
func flightsOf(ctx context.Context) []*node {
	var found []*node
	if n, ok := ctx.Value(nodeKey{}).(*node); ok {
		found = append(found, n)
	}
	graph.Lock()
	defer graph.Unlock()
	if len(graph.running) == 0 {
		return found // spares the look at the stack
	}
	if n, ok := graph.running[goroutine()]; ok {
		found = append(found, n)
	}
	return found
}

// waitFor notes that a call made within some flights waits for target, until stop is
// called. It is not ok if target waits for one of them already, or is one.
func waitFor(within []*node, target *node) (stop func(), ok bool) {
	if len(within) == 0 {
		return func() {}, true
	}
	graph.Lock()
	defer graph.Unlock()
	for _, n := range within {
		if target.reaches(n, map[*node]bool{}) {
			return nil, false
		}
	}
	for _, n := range within {
		if n.waitsFor == nil {
			n.waitsFor = map[*node]int{}
		}
		n.waitsFor[target]++
	}
	return func() {
		graph.Lock()
		defer graph.Unlock()
		for _, n := range within {
			if n.waitsFor[target]--; n.waitsFor[target] == 0 {
				delete(n.waitsFor, target)
			}
		}
	}, true
}

// reaches reports whether n is other, or waits for it by any way that was not tried
// before. The graph is locked.
func (n *node) reaches(other *node, tried map[*node]bool) bool {
	if n == other {
		return true
	}
	if tried[n] {
		return false
	}
	tried[n] = true
	for next := range n.waitsFor {
		if next.reaches(other, tried) {
			return true
		}
	}
	return false
}

// enter notes that n runs on this goroutine, until leave is called there.
func enter(n *node) (leave func()) {
	id := goroutine()
	graph.Lock()
	defer graph.Unlock()
	if graph.running == nil {
		graph.running = map[uint64]*node{}
	}
	n.outer = graph.running[id]
	graph.running[id] = n
	return func() {
		graph.Lock()
		defer graph.Unlock()
		if n.outer != nil {
			graph.running[id] = n.outer
		} else {
			delete(graph.running, id)
		}
	}
}

// goroutine returns the number of the calling goroutine. The runtime offers no other
// way than the head of a stack trace, which takes microseconds; only calls that find
// no value take it.
func goroutine() uint64 {
	var buf [64]byte
	head := bytes.TrimPrefix(buf[:runtime.Stack(buf[:], false)], []byte("goroutine "))
	digits, _, _ := bytes.Cut(head, []byte(" "))
	n, _ := strconv.ParseUint(string(digits), 10, 64)
	return n
}
