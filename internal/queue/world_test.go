package queue_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/lifecycle"
	"github.com/lockfx/lockfx/internal/memstore"
	"github.com/lockfx/lockfx/internal/queue"
)

// worldStore is a memory store whose requests take time, and which has outages, loses
// watches, wakes without a reason, and steps its clock. It tells the witness of leases.
type worldStore struct {
	*memstore.Store
	w *witness

	mu      sync.Mutex
	random  *rand.Rand
	step    time.Duration // of its clock
	down    bool
	watches map[*watch]struct{}
}

// watch is one that its watcher has not stopped.
type watch struct {
	freed, lost chan struct{}
	spurious    chan struct{}
}

var _ lockfx.Watcher = (*worldStore)(nil)

func newWorldStore(w *witness, random *rand.Rand) *worldStore {
	s := &worldStore{w: w, random: random, watches: map[*watch]struct{}{}}
	s.Store = memstore.New(memstore.WithNow(func() time.Time { return time.Now().Add(s.step) })) // under s.mu
	return s
}

// callerKey is the key of the caller in the context of its requests.
type callerKey struct{}

func (s *worldStore) leg() time.Duration {
	if !s.w.delays {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Duration(s.random.Int64N(int64(maxLeg)))
}

// request makes a request: on its way, decided, on its way back.
func (s *worldStore) request(ctx context.Context, decide func() error) error {
	there, back := s.leg(), s.leg()
	if there > 0 {
		select {
		case <-time.After(there):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	err := s.decided(decide)
	time.Sleep(back)
	return err
}

func (s *worldStore) decided(decide func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return errDown
	}
	return decide()
}

func (s *worldStore) Acquire(ctx context.Context, k string, d time.Duration) (grant lockfx.Grant, err error) {
	if c, ok := ctx.Value(callerKey{}).(*caller); ok {
		s.w.mu.Lock()
		s.w.turn(c, "a request")
		s.w.mu.Unlock()
	}
	err = s.request(ctx, func() (err error) {
		if grant, err = s.Store.Acquire(ctx, k, d); grant.OK {
			s.w.granted()
		}
		return err
	})
	return grant, err
}

func (s *worldStore) Renew(ctx context.Context, k string, token lockfx.Token, d time.Duration) (ok bool, err error) {
	err = s.request(ctx, func() (err error) {
		if ok, err = s.Store.Renew(ctx, k, token, d); ok {
			s.w.renewed()
		}
		return err
	})
	return ok, err
}

func (s *worldStore) Release(ctx context.Context, k string, token lockfx.Token) (ok bool, err error) {
	err = s.request(ctx, func() (err error) {
		if ok, err = s.Store.Release(ctx, k, token); ok {
			s.w.freed()
		}
		return err
	})
	return ok, err
}

func (s *worldStore) Watch(ctx context.Context, k string) (_ <-chan struct{}, stop func(), err error) {
	this := &watch{make(chan struct{}, 1), make(chan struct{}), make(chan struct{}, 1)}
	stopped := make(chan struct{})
	err = s.request(ctx, func() error {
		inner, unwatch, err := s.Store.Watch(ctx, k)
		if err != nil {
			return err
		}
		s.watches[this] = struct{}{}
		go func() {
			defer unwatch()
			this.forward(inner, stopped)
		}()
		return nil
	})
	return this.freed, sync.OnceFunc(func() {
		close(stopped)
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watches, this)
	}), err
}

// forward hands signals on until the watch is stopped, or lost.
func (w *watch) forward(inner <-chan struct{}, stopped <-chan struct{}) {
	for {
		select {
		case <-inner:
		case <-w.spurious:
		case <-stopped:
			return
		case <-w.lost:
			close(w.freed)
			<-stopped
			return
		}
		select {
		case w.freed <- struct{}{}:
		default:
		}
	}
}

// disturb makes one kind of trouble.
func (s *worldStore) disturb(random *rand.Rand) {
	d := time.Duration(random.Int64N(int64(3 * s.w.ttl)))
	switch random.IntN(5) {
	case 0:
		s.w.trouble("outage", d)
		s.set(func() { s.down = true })
		time.Sleep(d)
		s.set(func() { s.down = false })
	case 1:
		s.w.trouble("lost watches", 0)
		s.set(func() {
			for w := range s.watches {
				close(w.lost)
				delete(s.watches, w)
			}
		})
	case 2:
		s.set(func() {
			for w := range s.watches {
				select {
				case w.spurious <- struct{}{}:
				default:
				}
			}
		})
	case 3:
		d -= s.w.ttl
		s.w.trouble("clock step", 0)
		s.set(func() {
			_, _ = s.Inspect(background, key) // what has expired stays expired
			s.step += d
			s.w.shifted(d)
		})
	case 4:
		s.set(func() {
			if ok, _ := s.Break(background, key); ok {
				s.w.freed()
			}
		})
	}
}

func (s *worldStore) set(f func()) { s.mu.Lock(); defer s.mu.Unlock(); f() }

// A line is what a schedule drives: a [queue.Queue], or one with a planted fault.
type line interface {
	Run(context.Context, queue.Request, queue.Body) error
	Idle() bool
}

// replica is one process: callers of one line, over a machine that is made anew when
// it stops.
type replica struct {
	w    *witness
	line line
	cfg  lifecycle.Config

	mu      sync.Mutex
	machine *lifecycle.Machine
}

func (p *replica) current() *lifecycle.Machine { p.mu.Lock(); defer p.mu.Unlock(); return p.machine }

// restart stops the machine and makes another one.
func (p *replica) restart() error {
	old := p.current()
	p.w.stopped(p)
	if err := old.Dispose(background); err != nil {
		return err
	}
	p.cfg.Last = old.Last()
	m, err := lifecycle.New(p.cfg)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.machine = m
	return err
}
