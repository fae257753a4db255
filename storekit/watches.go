package storekit

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Watches keeps who watches which name, and runs one [Source] for all of them while there
// is one. Set its fields before the first watch. It is safe for concurrent use.
type Watches struct {
	// Listen is the source: it calls Ready once it misses nothing, or Confirm for each
	// name, then Wake for each name that may be free, until ctx ends or it is lost. Its
	// error is that of the watches which were not confirmed by then; the channels of the
	// others are closed.
	Listen func(ctx context.Context, s *Source) error
	// Tasks runs Listen. It must not be nil.
	Tasks *Tasks
	// Linger is for how long the source outlives its last watch: a waiter that comes back
	// within that time opens nothing. 0 ends it at once.
	Linger time.Duration

	mu      sync.Mutex // guards what follows, and the sources that ever ran
	current *Source
}

// ErrClosed is what a watch meets that was not confirmed when the store was closed, or
// that was given up.
var ErrClosed = errors.New("the store was closed")

// Source is one run of [Watches.Listen].
type Source struct {
	of      *Watches
	cancel  context.CancelFunc
	linger  *time.Timer // not nil while the source outlives its last watch
	ready   bool
	over    bool
	topics  map[string]*topic
	changed chan struct{} // capacity 1
}

// topic is a name that is watched.
type topic struct {
	watches map[chan struct{}]struct{}
	settled chan struct{} // closed when it is confirmed, or err is set
	done    bool          // settled is closed
	err     error         // guarded by Watches.mu until settled is closed
}

// Watch adds a watch of name, and starts a source if there is none. It returns when the
// source has confirmed that it misses nothing from now on, or with its error, or with the
// cause of the end of ctx. freed has capacity 1, and is closed when the watch is lost. stop
// ends the watch; it may be called more than once, and must be called.
func (w *Watches) Watch(ctx context.Context, name string) (freed <-chan struct{}, stop func(), err error) {
	s, t, signals := w.add(name)
	stop = sync.OnceFunc(func() { s.remove(name, t, signals) })
	select {
	case <-t.settled:
		err = t.err
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		stop()
		return nil, nil, err
	}
	return signals, stop, nil
}

// Close loses all watches: their channels are closed, and the source is ended.
func (w *Watches) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.current != nil {
		w.current.drop(ErrClosed)
	}
}

func (w *Watches) add(name string) (*Source, *topic, chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.current == nil {
		w.current = w.start()
	}
	s := w.current
	if s.linger != nil {
		s.linger.Stop()
		s.linger = nil
	}
	t := s.topics[name]
	if t == nil {
		t = &topic{watches: map[chan struct{}]struct{}{}, settled: make(chan struct{})}
		s.topics[name] = t
		if s.ready {
			t.settle(nil)
		}
		s.note()
	}
	signals := make(chan struct{}, 1)
	t.watches[signals] = struct{}{}
	return s, t, signals
}

// start starts a source. w.mu is held.
func (w *Watches) start() *Source {
	ctx, cancel := context.WithCancel(context.Background())
	s := &Source{of: w, cancel: cancel, topics: map[string]*topic{}, changed: make(chan struct{}, 1)}
	w.Tasks.Go(func() {
		err := w.Listen(ctx, s)
		if err == nil {
			err = ErrClosed
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		s.drop(err)
	})
	return s
}
