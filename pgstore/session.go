package pgstore

import (
	"context"
	"errors"
	"time"
)

const (
	// silence is how long the connection may carry nothing before it is tested.
	silence = 15 * time.Second
	// testWithin bounds that test, and the farewell.
	testWithin = 5 * time.Second
	// reopenWithin bounds the attempts to replace a connection that broke, and
	// reopenAgain is the pause between two, and from one connection to the next.
	reopenWithin = 5 * time.Second
	reopenAgain  = 100 * time.Millisecond
)

// ear hears which keys were freed.
type ear interface {
	// next returns the next key. It returns errSilence when there was none for as
	// long as silence, and any other error when the connection is lost.
	next(context.Context) (key string, err error)
	// test returns an error when the connection is lost.
	test(context.Context) error
	close()
}

var errSilence = errors.New("nothing was heard")

// deafError says that nothing can ever be heard over the pool.
type deafError struct{ reason string }

func (e deafError) Error() string { return "can't listen: " + e.reason }

// session serves watches over one connection at a time.
type session struct {
	hub     *hub
	cancel  context.CancelFunc
	watches map[string]map[*watch]struct{} // by key; guarded by hub.mu
	ready   chan struct{}                  // closed once it listens, or refusal is set
	refusal error                          // set before ready is closed, and not after
}

// start starts a session. h.mu is held.
func (h *hub) start() *session {
	ctx, cancel := context.WithCancel(context.Background())
	s := &session{hub: h, cancel: cancel, watches: map[string]map[*watch]struct{}{}, ready: make(chan struct{})}
	h.tasks.run(func() { s.run(ctx) })
	return s
}

func (s *session) isReady() bool {
	select {
	case <-s.ready:
		return true
	default:
		return false
	}
}

// run listens until ctx ends or the connection can't be had.
func (s *session) run(ctx context.Context) {
	e, err := s.hub.open(ctx)
	for err == nil {
		began := time.Now()
		s.listening()
		err = s.hear(ctx, e)
		e.close()
		if pause(ctx, reopenAgain-time.Since(began)) && ctx.Err() == nil {
			e, err = s.reopen(ctx)
		}
	}
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	s.hub.drop(s, err)
}

// listening lets the first watches begin, or else wakes everybody: what was told
// between two connections is lost.
func (s *session) listening() {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	if !s.isReady() {
		close(s.ready)
		return
	}
	for key := range s.watches {
		s.wake(key)
	}
}

// hear passes on what is heard until the connection is lost or ctx ends.
func (s *session) hear(ctx context.Context, e ear) error {
	for {
		key, err := e.next(ctx)
		switch {
		case err == nil:
			s.hub.mu.Lock()
			s.wake(key)
			s.hub.mu.Unlock()
		case errors.Is(err, errSilence):
			if err := e.test(ctx); err != nil {
				return err
			}
		default:
			return err
		}
	}
}

// wake signals all who watch the key. A channel that is full already says the same.
// hub.mu is held.
func (s *session) wake(key string) {
	for w := range s.watches[key] {
		select {
		case w.freed <- struct{}{}:
		default:
		}
	}
}

// reopen replaces a connection that broke. Those who wait know best how to go on if
// that takes long.
func (s *session) reopen(ctx context.Context) (ear, error) {
	ctx, cancel := context.WithTimeout(ctx, reopenWithin)
	defer cancel()
	for {
		e, err := s.hub.open(ctx)
		var deaf deafError
		if err == nil || errors.As(err, &deaf) || !pause(ctx, reopenAgain) {
			return e, err
		}
	}
}
