package fxlock_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

// spyStore is a memory store that keeps a journal of grants and releases, and
// fails where it is told to.
type spyStore struct {
	*fxlock.MemoryStore
	journal *journal
	down    error                                           // every acquisition fails with it
	acquire func(lockfx.Grant, error) (lockfx.Grant, error) // changes the answer
	renew   func() error                                    // instead of the answer
	release func() (bool, error)                            // instead of the answer

	mu     sync.Mutex // guards what follows
	labels []string
}

func newSpyStore(j *journal) *spyStore {
	return &spyStore{MemoryStore: fxlock.NewMemoryStore(), journal: j}
}

func (s *spyStore) Acquire(ctx context.Context, k string, d time.Duration) (lockfx.Grant, error) {
	s.mu.Lock()
	s.labels = append(s.labels, lockfx.LabelFrom(ctx))
	s.mu.Unlock()
	if s.down != nil {
		return lockfx.Grant{}, s.down
	}
	grant, err := s.MemoryStore.Acquire(ctx, k, d)
	if s.acquire != nil {
		grant, err = s.acquire(grant, err)
	}
	if grant.OK && err == nil {
		s.journal.add("acquire")
	}
	return grant, err
}

func (s *spyStore) Renew(ctx context.Context, k string, token lockfx.Token, d time.Duration) (bool, error) {
	if s.renew != nil {
		if err := s.renew(); err != nil {
			return false, err
		}
	}
	return s.MemoryStore.Renew(ctx, k, token, d)
}

func (s *spyStore) Release(ctx context.Context, k string, token lockfx.Token) (bool, error) {
	s.journal.add("release")
	if s.release != nil {
		return s.release()
	}
	return s.MemoryStore.Release(ctx, k, token)
}

// valid reports whether a write with token would be let through: it is the token
// of an unexpired lease on key.
func (s *spyStore) valid(token lockfx.Token) bool {
	lease, err := s.Inspect(context.Background(), key)
	return err == nil && lease.Token == token
}

// free reports whether nobody holds key.
func (s *spyStore) free() bool { return s.valid(0) }

// takeAway lets somebody else have the lease, and waits until the holder has
// noticed.
func (s *spyStore) takeAway(t *testing.T) {
	t.Helper()
	if ok, err := s.Break(context.Background(), key); !ok || err != nil {
		t.Errorf("Break: %v, %v: nobody held the lease", ok, err)
	}
	time.Sleep(oneBeat)
}

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

// interceptedStore is a memory store that calls before for each request. An error of it is
// the answer.
type interceptedStore struct {
	*fxlock.MemoryStore
	before func(ctx context.Context, request string) error
}

func newInterceptedStore(before func(ctx context.Context, request string) error) *interceptedStore {
	return &interceptedStore{fxlock.NewMemoryStore(), before}
}

func (s *interceptedStore) Acquire(ctx context.Context, k string, d time.Duration) (lockfx.Grant, error) {
	if err := s.before(ctx, "acquire"); err != nil {
		return lockfx.Grant{}, err
	}
	return s.MemoryStore.Acquire(ctx, k, d)
}

func (s *interceptedStore) Renew(ctx context.Context, k string, token lockfx.Token, d time.Duration) (bool, error) {
	if err := s.before(ctx, "renew"); err != nil {
		return false, err
	}
	return s.MemoryStore.Renew(ctx, k, token, d)
}

func (s *interceptedStore) Release(ctx context.Context, k string, token lockfx.Token) (bool, error) {
	if err := s.before(ctx, "release"); err != nil {
		return false, err
	}
	return s.MemoryStore.Release(ctx, k, token)
}

func (s *interceptedStore) Inspect(ctx context.Context, k string) (lockfx.Lease, error) {
	if err := s.before(ctx, "inspect"); err != nil {
		return lockfx.Lease{}, err
	}
	return s.MemoryStore.Inspect(ctx, k)
}

// unanswering returns a store that never answers the given request.
func unanswering(request string) *interceptedStore {
	return newInterceptedStore(func(ctx context.Context, r string) error {
		if r != request {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	})
}

// farStore is a memory store that can be out of reach.
type farStore struct {
	*interceptedStore
	away atomic.Bool
}

var errAway = errors.New("no way through")

func newFarStore() *farStore {
	s := new(farStore)
	s.interceptedStore = newInterceptedStore(func(context.Context, string) error {
		if s.away.Load() {
			return errAway
		}
		return nil
	})
	return s
}
