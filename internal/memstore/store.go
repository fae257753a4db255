package memstore

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/storekit"
)

// resolution is the shortest ttl.
const resolution = time.Nanosecond

// Store is a [lockfx.Store] in memory, with every optional capability that makes
// sense there. It is safe for concurrent use. Make one with [New].
//
// Each method returns an error, and has then changed nothing, when its ctx is
// over (the error matches ctx.Err() and the cause), or when the key or the ttl
// breaks a rule (the error matches [lockfx.ErrConfig]). The shortest ttl is 1 ns.
type Store struct {
	now func() time.Time

	mu       sync.Mutex // guards what follows
	last     lockfx.Token
	records  table[record]
	watchers table[watchers]
}

// record is a lease as the store keeps it.
type record struct {
	token   lockfx.Token
	label   string
	expires time.Time
}

func (r record) liveAt(now time.Time) bool { return now.Before(r.expires) }

var _ lockfx.Store = (*Store)(nil)

// New returns an empty store.
func New(opts ...Option) *Store {
	s := &Store{now: time.Now, records: newTable[record](), watchers: newTable[watchers]()}
	for _, opt := range opts {
		opt.apply(s)
	}
	return s
}

// Acquire takes the lease on key for ttl if the key is free or its lease expired.
// Otherwise the grant names the label of the holder and the time left, which is
// greater than 0. It never waits.
//
// An error matches [lockfx.ErrStore] when the last possible token was issued.
func (s *Store) Acquire(ctx context.Context, key string, ttl time.Duration) (lockfx.Grant, error) {
	if err := storekit.Check(ctx, "acquire", key, lockfx.CheckTTL(ttl, resolution)); err != nil {
		return lockfx.Grant{}, err
	}
	label := lockfx.LabelFrom(ctx)

	s.mu.Lock()
	defer s.mu.Unlock()
	now, err := s.decide(ctx, "acquire", key)
	if err != nil {
		return lockfx.Grant{}, err
	}
	if r, held := s.lease(key, now); held {
		return lockfx.Grant{HeldBy: r.label, RetryAfter: r.expires.Sub(now)}, nil
	}
	if s.last == math.MaxInt64 {
		return lockfx.Grant{}, storekit.Fault(ctx, "acquire", key, fmt.Errorf("no token is left above %v", s.last))
	}
	s.last = max(s.last+1, lockfx.Token(now.UnixMicro()))
	s.records.put(key, record{token: s.last, label: label, expires: now.Add(ttl)})
	return lockfx.Grant{OK: true, Token: s.last}, nil
}

// Renew sets the time left of the lease on key to ttl if the lease is unexpired
// and carries exactly token, and reports whether it did. Otherwise it changes
// nothing. A renewal that shortens the lease wakes those who watch the key, since
// the time left that they were told is too long.
func (s *Store) Renew(ctx context.Context, key string, token lockfx.Token, ttl time.Duration) (bool, error) {
	if err := storekit.Check(ctx, "renew", key, lockfx.CheckTTL(ttl, resolution)); err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now, err := s.decide(ctx, "renew", key)
	if err != nil {
		return false, err
	}
	r, held := s.lease(key, now)
	if !held || r.token != token {
		return false, nil
	}
	before := r.expires
	r.expires = now.Add(ttl)
	s.records.entries[key] = r
	if r.expires.Before(before) {
		s.wake(key)
	}
	return true, nil
}

// Release frees the lease on key if it is unexpired and carries exactly token,
// and reports whether it did. An expired lease is none any more: false.
func (s *Store) Release(ctx context.Context, key string, token lockfx.Token) (bool, error) {
	if err := storekit.Check(ctx, "release", key, nil); err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now, err := s.decide(ctx, "release", key)
	if err != nil {
		return false, err
	}
	r, held := s.lease(key, now)
	if !held || r.token != token {
		return false, nil
	}
	s.free(key)
	return true, nil
}

// decide returns the instant that the decision of op is made by, after a look at
// the end of ctx. It also compacts the records when that is due. s.mu is held.
func (s *Store) decide(ctx context.Context, op, key string) (time.Time, error) {
	now := s.now()
	if ctx.Err() != nil {
		return now, storekit.Ended(ctx, op, key)
	}
	if s.records.due() {
		s.records.compact(func(r record) bool { return r.liveAt(now) })
	}
	return now, nil
}

// lease returns the unexpired lease on key. An expired one is dropped at sight,
// so that it stays expired even if the clock is stepped back. s.mu is held.
func (s *Store) lease(key string, now time.Time) (record, bool) {
	r, ok := s.records.entries[key]
	if ok && !r.liveAt(now) {
		s.records.remove(key)
		return record{}, false
	}
	return r, ok
}

// free drops the lease on key and wakes those who watch it. s.mu is held.
func (s *Store) free(key string) {
	s.records.remove(key)
	s.wake(key)
}
