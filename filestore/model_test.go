package filestore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/filestore"
)

// full is a store with all the capabilities of the one under test.
type full interface {
	lockfx.Store
	lockfx.Watcher
	lockfx.Inspector
	lockfx.Breaker
}

// model says in the plainest way what a store has to answer. It never forgets.
type model struct {
	clock  *clock
	wakes  func(<-chan struct{}) bool // waits for a signal that is due
	last   lockfx.Token
	leases map[string]modelLease
	issued []lockfx.Token
	watch  map[string][]*modelWatch
}

type modelLease struct {
	token   lockfx.Token
	label   string
	expires time.Time
}

// modelWatch is a watch of the store and whether a signal must be in its channel.
type modelWatch struct {
	freed <-chan struct{}
	stop  func()
	due   bool
}

func (m *model) lease(key string) lockfx.Lease {
	l := m.leases[key]
	if left := l.expires.Sub(m.clock.now()); left > 0 {
		return lockfx.Lease{Token: l.token, Label: l.label, TimeLeft: left}
	}
	return lockfx.Lease{}
}

func (m *model) acquire(key, label string, ttl time.Duration) lockfx.Grant {
	if l := m.lease(key); l.Token != 0 {
		return lockfx.Grant{HeldBy: l.Label, RetryAfter: l.TimeLeft}
	}
	m.last = max(m.last+1, lockfx.Token(m.clock.now().UnixMicro()))
	m.issued = append(m.issued, m.last)
	m.leases[key] = modelLease{m.last, label, m.clock.now().Add(ttl)}
	return lockfx.Grant{OK: true, Token: m.last}
}

func (m *model) renew(key string, token lockfx.Token, ttl time.Duration) bool {
	l := m.lease(key)
	if l.Token == 0 || l.Token != token {
		return false
	}
	m.leases[key] = modelLease{token, l.Label, m.clock.now().Add(ttl)}
	return true
}

// free is a release, or a break when token is 0.
func (m *model) free(key string, token lockfx.Token) bool {
	l := m.lease(key)
	if l.Token == 0 || token != 0 && l.Token != token {
		return false
	}
	delete(m.leases, key)
	for _, w := range m.watch[key] {
		w.due = true
	}
	return true
}

// disagreement lets s and the model do the same random operations, and returns
// the first difference. The clock moves forward by steps that often hit an expiry
// exactly.
func disagreement(s full, c *clock, seed uint64, operations int, wakes func(<-chan struct{}) bool) error {
	random := rand.New(rand.NewPCG(seed, 1))
	m := &model{clock: c, wakes: wakes, leases: map[string]modelLease{}, watch: map[string][]*modelWatch{}}
	defer func() {
		for _, watches := range m.watch {
			for _, w := range watches {
				w.stop()
			}
		}
	}()
	for i := range operations {
		key := []string{"a", "b", "c", "host-1", "host-10", fmt.Sprint(random.IntN(1000))}[random.IntN(6)]
		if did, got, want := m.step(s, random, key); got != want {
			return fmt.Errorf("seed %d, operation %d: %s on %q: got %v; want %v", seed, i, did, key, got, want)
		}
	}
	return nil
}

// step does one operation, and returns what the store and the model answered.
func (m *model) step(s full, random *rand.Rand, key string) (did string, got, want any) {
	ctx, cancel := context.WithCancel(lockfx.WithLabel(context.Background(), fmt.Sprint("label ", random.IntN(3))))
	defer cancel()
	ttl := time.Duration(1+random.IntN(5)) * time.Millisecond
	token := m.anyToken(random, key)
	type answer struct {
		value any
		err   error
	}
	switch random.IntN(9) {
	case 0, 1:
		g, err := s.Acquire(ctx, key, ttl)
		return "acquire", answer{g, err}, answer{m.acquire(key, lockfx.LabelFrom(ctx), ttl), nil}
	case 2:
		ok, err := s.Renew(ctx, key, token, ttl)
		return fmt.Sprint("renew of ", token), answer{ok, err}, answer{m.renew(key, token, ttl), nil}
	case 3:
		ok, err := s.Release(ctx, key, token)
		return fmt.Sprint("release of ", token), answer{ok, err}, answer{token != 0 && m.free(key, token), nil}
	case 4:
		if random.IntN(4) > 0 {
			m.clock.advance(ttl - 1)
			return "advance", nil, nil
		}
		ok, err := s.Break(ctx, key)
		return "break", answer{ok, err}, answer{m.free(key, 0), nil}
	case 5:
		l, err := s.Inspect(ctx, key)
		return "inspect", answer{l, err}, answer{m.lease(key), nil}
	case 6:
		cancel()
		_, acquireErr := s.Acquire(ctx, key, ttl)
		_, renewErr := s.Renew(ctx, key, token, ttl)
		_, releaseErr := s.Release(ctx, key, token)
		failed := acquireErr != nil && renewErr != nil && releaseErr != nil
		return "calls with a dead ctx", failed, true
	case 7:
		freed, stop, err := s.Watch(ctx, key)
		m.watch[key] = append(m.watch[key], &modelWatch{freed: freed, stop: stop})
		return "watch", err, nil
	default:
		if len(m.watch[key]) == 0 {
			return "no watch", nil, nil
		}
		w := m.watch[key][0]
		m.watch[key] = m.watch[key][1:]
		defer w.stop()
		got := !w.due || m.wakes(w.freed)
		return "signal", got, true // a spurious one is allowed
	}
}

// anyToken returns the token of key more often than another one of those issued,
// and rarely one that never was.
func (m *model) anyToken(random *rand.Rand, key string) lockfx.Token {
	switch n := random.IntN(10); {
	case n < 6:
		return m.leases[key].token
	case n < 9 && len(m.issued) > 0:
		return m.issued[random.IntN(len(m.issued))]
	default:
		return lockfx.Token(random.IntN(3) - 1)
	}
}

func TestStoreAgreesWithTheModel(t *testing.T) {
	for seed := range uint64(3) {
		s, c, _ := newStore(t)
		if err := disagreement(s, c, seed, 1_000, wakes); err != nil {
			t.Error(err)
		}
	}
}

// Two processes are one store: each operation goes to a handle of its own.
func TestManyHandlesAgreeWithTheModel(t *testing.T) {
	s, c, dir := newStore(t)
	handles := []full{s, open(t, dir, filestore.WithNow(c.now)), open(t, dir, filestore.WithNow(c.now))}
	if err := disagreement(&rotating{handles: handles}, c, 1, 1_000, wakes); err != nil {
		t.Error(err)
	}
}

// rotating sends each call to the next handle.
type rotating struct {
	handles []full
	calls   int
}

func (r *rotating) next() full { r.calls++; return r.handles[r.calls%len(r.handles)] }

func (r *rotating) Acquire(ctx context.Context, key string, ttl time.Duration) (lockfx.Grant, error) {
	return r.next().Acquire(ctx, key, ttl)
}

func (r *rotating) Renew(ctx context.Context, key string, token lockfx.Token, ttl time.Duration) (bool, error) {
	return r.next().Renew(ctx, key, token, ttl)
}

func (r *rotating) Release(ctx context.Context, key string, token lockfx.Token) (bool, error) {
	return r.next().Release(ctx, key, token)
}

func (r *rotating) Watch(ctx context.Context, key string) (<-chan struct{}, func(), error) {
	return r.next().Watch(ctx, key)
}

func (r *rotating) Inspect(ctx context.Context, key string) (lockfx.Lease, error) {
	return r.next().Inspect(ctx, key)
}

func (r *rotating) Break(ctx context.Context, key string) (bool, error) {
	return r.next().Break(ctx, key)
}
