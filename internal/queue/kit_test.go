package queue_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/lifecycle"
	"github.com/lockfx/lockfx/internal/memstore"
	"github.com/lockfx/lockfx/internal/queue"
)

func TestMain(m *testing.M) {
	// One processor takes turns where several would race.
	runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0)))
	goleak.VerifyTestMain(m)
}

const (
	key = "nightly"
	ttl = 30 * time.Second
)

var background = context.Background()

var errDown = errors.New("the store is down")

// ask is one request of a waiter.
type ask struct {
	what string // "acquire" or "watch"
	at   time.Time
}

// spy is a memory store that notes what it is asked, and fails where it is told to.
type spy struct {
	*memstore.Store

	mu      sync.Mutex
	asks    []ask
	watches int // that were not stopped

	acquire func(ctx context.Context) error // instead of the answer, unless nil is returned
	watch   func(ctx context.Context) (<-chan struct{}, func(), error)
	refused func() // called behind each refusal
}

var _ lockfx.Watcher = (*spy)(nil)

func newSpy() *spy { return &spy{Store: memstore.New()} }

func (s *spy) note(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asks = append(s.asks, ask{what, time.Now()})
}

func (s *spy) Acquire(ctx context.Context, k string, d time.Duration) (lockfx.Grant, error) {
	s.note("acquire")
	s.mu.Lock()
	acquire := s.acquire
	s.mu.Unlock()
	if acquire != nil {
		if err := acquire(ctx); err != nil {
			return lockfx.Grant{}, err
		}
	}
	grant, err := s.Store.Acquire(ctx, k, d)
	if !grant.OK && err == nil && s.refused != nil {
		s.refused()
	}
	return grant, err
}

func (s *spy) Watch(ctx context.Context, k string) (<-chan struct{}, func(), error) {
	s.note("watch")
	s.mu.Lock()
	watch := s.watch
	s.mu.Unlock()
	if watch == nil {
		watch = func(ctx context.Context) (<-chan struct{}, func(), error) { return s.Store.Watch(ctx, k) }
	}
	freed, stop, err := watch(ctx)
	if err != nil || freed == nil {
		return freed, stop, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watches++
	return freed, sync.OnceFunc(func() {
		stop()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.watches--
	}), nil
}

// acquires sets what happens to acquisitions from now on.
func (s *spy) acquires(f func(context.Context) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acquire = f
}

func (s *spy) down(err error) { s.acquires(func(context.Context) error { return err }) }

func (s *spy) up() { s.acquires(nil) }

// asked returns the instants of the requests of that kind since from.
func (s *spy) asked(what string, from time.Time) []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	var at []time.Duration
	for _, a := range s.asks {
		if a.what == what && !a.at.Before(from) {
			at = append(at, a.at.Sub(from))
		}
	}
	return at
}

func (s *spy) watching() int { s.mu.Lock(); defer s.mu.Unlock(); return s.watches }

// polled hides that a store wakes.
type polled struct{ lockfx.Store }

// process is one process of several that share a store.
type process struct {
	*lifecycle.Machine
	line *queue.Queue

	mu     sync.Mutex
	events []lockfx.Event
}

func newProcess(t testing.TB, store lockfx.Store, changes ...func(*lifecycle.Config)) *process {
	t.Helper()
	p := &process{line: queue.New()}
	cfg := lifecycle.Config{Key: key, Store: store, TTL: ttl, Observers: []func(lockfx.Event){func(e lockfx.Event) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.events = append(p.events, e)
	}}}
	for _, change := range changes {
		change(&cfg)
	}
	m, err := lifecycle.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	p.Machine = m
	return p
}

// kinds returns what happened, in order.
func (p *process) kinds() []lockfx.EventKind {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	var kinds []lockfx.EventKind
	for _, e := range p.events {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

func (p *process) wantKinds(t testing.TB, want ...lockfx.EventKind) {
	t.Helper()
	if got := p.kinds(); !slices.Equal(got, want) {
		t.Errorf("events are %v, want %v", got, want)
	}
}

// run runs body, which waits for at most limit.
func (p *process) run(ctx context.Context, limit time.Duration, body queue.Body) error {
	return p.line.Run(ctx, queue.Request{Machine: p.Machine, Limit: limit}, body)
}

func nothing(context.Context, *lifecycle.Hold) error { return nil }

// hold holds the key until the returned function is called.
func (p *process) hold(t testing.TB) (release func()) {
	t.Helper()
	held, done, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- p.run(background, 0, func(context.Context, *lifecycle.Hold) error {
			close(held)
			<-done
			return nil
		})
	}()
	select {
	case <-held:
	case err := <-ended:
		t.Fatalf("not held: %v", err)
	}
	return sync.OnceFunc(func() {
		close(done)
		if err := <-ended; err != nil {
			t.Errorf("the holder: %v", err)
		}
	})
}

// ended is how a call ended.
type ended struct {
	err      error
	at       time.Time
	panicked any
	exited   bool // it ended its goroutine
}

// spawn makes a call in a goroutine of its own, and lets it come to rest.
func spawn(call func() error) <-chan ended {
	result := spawnQuietly(call)
	synctest.Wait()
	return result
}

// spawnQuietly makes a call in a goroutine of its own.
func spawnQuietly(call func() error) <-chan ended {
	result := make(chan ended, 1)
	go func() {
		e := ended{exited: true}
		defer func() {
			if r := recover(); r != nil {
				e.panicked, e.exited = r, false
			}
			e.at = time.Now()
			result <- e
		}()
		e.err = call()
		e.exited = false
	}()
	return result
}

// waits checks that a call still waits.
func waits(t testing.TB, call <-chan ended) {
	t.Helper()
	synctest.Wait()
	select {
	case e := <-call:
		t.Fatalf("it does not wait: %v", e.err)
	default:
	}
}

// wantNow checks that a call has ended, or ends without any time passing, with an
// error that matches the targets.
func wantNow(t testing.TB, call <-chan ended, targets ...error) {
	t.Helper()
	wantIs(t, endNow(t, call), targets...)
}

// endNow returns how a call has ended, or ends without any time passing.
func endNow(t testing.TB, call <-chan ended) error {
	t.Helper()
	began := time.Now()
	e := <-call
	if passed := e.at.Sub(began); passed > 0 {
		t.Errorf("it went on for %v", passed)
	}
	return e.err
}

// wantIs checks that err matches the targets; without any it must be nil.
func wantIs(t testing.TB, err error, targets ...error) {
	t.Helper()
	if len(targets) == 0 && err != nil {
		t.Errorf("err = %v", err)
	}
	for _, target := range targets {
		if !errors.Is(err, target) {
			t.Errorf("err = %v, want one that matches %v", err, target)
		}
	}
}

func wantNot(t testing.TB, err error, targets ...error) {
	t.Helper()
	for _, target := range targets {
		if errors.Is(err, target) {
			t.Errorf("err = %v, which must not match %v", err, target)
		}
	}
}
