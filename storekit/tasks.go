package storekit

import (
	"context"
	"sync"
)

// Tasks are the goroutines of a store. The zero Tasks has none. Unlike a sync.WaitGroup it
// can be waited for with a bound, and while more are started. It is safe for concurrent use.
type Tasks struct {
	mu   sync.Mutex // guards what follows
	n    int
	idle chan struct{} // closed when n is 0; nil until somebody waits
}

// Go runs f in a goroutine, and returns what is closed when f has returned.
func (t *Tasks) Go(f func()) (done <-chan struct{}) {
	t.mu.Lock()
	t.n++
	t.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		defer t.end()
		defer close(ended)
		f()
	}()
	return ended
}

func (t *Tasks) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n--
	if t.n == 0 && t.idle != nil {
		close(t.idle)
		t.idle = nil
	}
}

// Wait returns nil once no goroutine is left, or the cause of the end of ctx.
func (t *Tasks) Wait(ctx context.Context) error {
	t.mu.Lock()
	if t.n == 0 {
		t.mu.Unlock()
		return nil
	}
	if t.idle == nil {
		t.idle = make(chan struct{})
	}
	idle := t.idle
	t.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
