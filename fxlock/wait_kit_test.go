package fxlock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

var errStoreDown = errors.New("the store is down")

// tallyStore is a memory store that counts what it is asked for, and can be down.
type tallyStore struct {
	*fxlock.MemoryStore

	mu       sync.Mutex
	down     error
	acquires []time.Time
	requests int // of all kinds
	watches  int // that are not stopped
}

var _ lockfx.Watcher = (*tallyStore)(nil)

func newTallyStore() *tallyStore { return &tallyStore{MemoryStore: fxlock.NewMemoryStore()} }

// count counts a request, and returns why it fails.
func (s *tallyStore) count(acquire bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	if acquire {
		s.acquires = append(s.acquires, time.Now())
	}
	return s.down
}

func (s *tallyStore) Acquire(ctx context.Context, k string, d time.Duration) (lockfx.Grant, error) {
	if err := s.count(true); err != nil {
		return lockfx.Grant{}, err
	}
	return s.MemoryStore.Acquire(ctx, k, d)
}

func (s *tallyStore) Renew(ctx context.Context, k string, token lockfx.Token, d time.Duration) (bool, error) {
	if err := s.count(false); err != nil {
		return false, err
	}
	return s.MemoryStore.Renew(ctx, k, token, d)
}

func (s *tallyStore) Release(ctx context.Context, k string, token lockfx.Token) (bool, error) {
	if err := s.count(false); err != nil {
		return false, err
	}
	return s.MemoryStore.Release(ctx, k, token)
}

func (s *tallyStore) Watch(ctx context.Context, k string) (<-chan struct{}, func(), error) {
	if err := s.count(false); err != nil {
		return nil, nil, err
	}
	freed, stop, err := s.MemoryStore.Watch(ctx, k)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watches++
	return freed, sync.OnceFunc(func() {
		stop()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.watches--
	}), err
}

// asked returns how many requests there were so far.
func (s *tallyStore) asked() int { s.mu.Lock(); defer s.mu.Unlock(); return s.requests }

func (s *tallyStore) setDown(err error) { s.mu.Lock(); defer s.mu.Unlock(); s.down = err }

// wantLeft checks that nobody watches any more.
func (s *tallyStore) wantLeft(t *testing.T) {
	t.Helper()
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watches != 0 {
		t.Errorf("%d watches are left", s.watches)
	}
}

// unwatched hides that a store wakes.
type unwatched struct{ lockfx.Store }

// started is a call under way.
type call struct{ ended chan ending }

// inBackground makes a call and lets it come to rest.
func inBackground(f func() error) *call {
	c := &call{make(chan ending, 1)}
	go func() { c.ended <- endingOf(f) }()
	synctest.Wait()
	return c
}

// waits checks that the call is still under way.
func (c *call) waits(t *testing.T) {
	t.Helper()
	synctest.Wait()
	select {
	case e := <-c.ended:
		t.Fatalf("it does not wait: %v", e.err)
	default:
	}
}

// endsNow waits for the end of the call, before which no time may pass.
func (c *call) endsNow(t *testing.T) error {
	t.Helper()
	began := time.Now()
	e := <-c.ended
	if passed := time.Since(began); passed > 0 {
		t.Errorf("it went on for %v", passed)
	}
	return e.err
}

// holding holds the lock until the returned function is called.
func holding(t *testing.T, lock *fxlock.Lock) (release func()) {
	t.Helper()
	done := make(chan struct{})
	run := inBackground(func() error {
		return lock.Do(context.Background(), func(context.Context, lockfx.Holder) error {
			<-done
			return nil
		})
	})
	if !lock.Held() {
		t.Fatalf("not held: %v", (<-run.ended).err)
	}
	return sync.OnceFunc(func() {
		close(done)
		noError(t, (<-run.ended).err)
	})
}

func workNothing(context.Context, lockfx.Holder) error { return nil }
