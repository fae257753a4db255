package redisstore

import (
	"context"
	"crypto/rand"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfx/lockfx"
)

// resolution is the shortest ttl: the server forgets keys by the millisecond.
const resolution = time.Millisecond

// Store is a [lockfx.Store] over Redis, with every optional capability. It is safe
// for concurrent use. Make one with [New].
//
// An error matches the end of the call's ctx, [lockfx.ErrConfig] for a key or a ttl
// that breaks a rule, [lockfx.ErrBadGrant] for an answer that is none, or
// [lockfx.ErrStore] for everything else that the client reports. The shortest ttl is
// 1 ms.
//
// A call returns when its ctx ends, or within 100 ms after that. The client may be
// busy with it for as long as its own timeouts allow; Close waits for that. Calls are
// cheapest with a client whose option ContextTimeoutEnabled is true.
type Store struct {
	client redis.UniversalClient
	prefix string
	memory int64 // microseconds
	tasks  tasks
	hub    hub
	beats  gatherer

	mindful bool        // calls of the client end at a deadline
	prompt  atomic.Bool // the last answer came promptly
	slotted atomic.Bool // a script that reached for two slots was refused
}

var _ lockfx.Store = (*Store)(nil)

// New returns a store over client, which it never closes. It sends nothing. The error
// matches [lockfx.ErrConfig] and names all faults. A nil client is refused, and so is
// a [redis.Ring]: it moves keys to another server when one is unreachable, which would
// give a held lock to a second holder.
func New(client redis.UniversalClient, opts ...Option) (*Store, error) {
	s, faults := settle(opts)
	if fault := clientFault(client); fault != "" {
		faults = append(faults, fault)
	}
	if faults != nil {
		return nil, fmt.Errorf("redisstore: %w: %s", lockfx.ErrConfig, strings.Join(faults, "; "))
	}
	store := &Store{client: client, prefix: s.prefix, memory: s.memory.Microseconds(), mindful: mindsDeadlines(client)}
	store.hub.subscribe = client.Subscribe
	store.hub.tasks = &store.tasks
	store.beats.send = store.renewGathered
	store.beats.tasks = &store.tasks
	return store, nil
}

// clientFault returns what stands against a client, or "".
func clientFault(client redis.UniversalClient) string {
	if v := reflect.ValueOf(client); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return "the client must not be nil"
	}
	if _, ring := client.(*redis.Ring); ring {
		return "a *redis.Ring moves keys between servers, so it can't exclude anybody"
	}
	return ""
}

// From returns a store over client with default options. It has the form that
// fxlock.StoreFrom takes, for whichever client type an application provides:
//
//	fxlock.StoreFrom(redisstore.From[*redis.Client])
func From[C redis.UniversalClient](client C) (*Store, error) { return New(client) }

// Acquire takes the lease on key for ttl if the key is free or its lease expired.
// Otherwise the grant names the label of the holder and the time left.
//
// When it returns an error, whether a lease was granted is unknown, so it is undone
// on a context of its own: see the package's documentation.
func (s *Store) Acquire(ctx context.Context, key string, ttl time.Duration) (lockfx.Grant, error) {
	if err := check(ctx, "acquire", key, lockfx.CheckTTL(ttl, resolution)); err != nil {
		return lockfx.Grant{}, err
	}
	lock, tag := lockName(s.prefix, key), rand.Text()
	reply, err := s.eval(ctx, acquireScript, []string{lock, undoneName(lock, tag)},
		microsOf(ttl), tag, lockfx.LabelFrom(ctx), s.memory)
	var grant lockfx.Grant
	if err == nil {
		grant, err = grantOf(reply)
	}
	if err != nil {
		s.undo(ctx, lock, tag)
		return lockfx.Grant{}, fault(ctx, "acquire", key, err)
	}
	return grant, nil
}

// Renew sets the time left of the lease on key to ttl if the lease is unexpired and
// carries exactly token, and reports whether it did. A renewal that shortens the
// lease wakes those who watch the key.
//
// Renewals of many locks at one moment are gathered, as if by [Store.RenewMany]: one that
// comes while another is under way waits for its answer, for 25 ms at most. In a cluster
// they are not: a node that hangs must not cost the leases on the others.
func (s *Store) Renew(ctx context.Context, key string, token lockfx.Token, ttl time.Duration) (bool, error) {
	if err := check(ctx, "renew", key, lockfx.CheckTTL(ttl, resolution)); err != nil {
		return false, err
	}
	r := lockfx.Renewal{Key: key, Token: token, TTL: ttl}
	if !s.reachesAll() {
		return s.renewAlone(ctx, r)
	}
	return s.beats.renew(ctx, r, func() (bool, error) { return s.renewAlone(ctx, r) })
}

func (s *Store) renewAlone(ctx context.Context, r lockfx.Renewal) (bool, error) {
	keys, args := s.renewArgs([]lockfx.Renewal{r}, []int{0})
	reply, err := s.eval(ctx, renewScript, keys, args...)
	var renewed []bool
	if err == nil {
		renewed, err = renewedOf(reply, 1)
	}
	if err != nil {
		return false, fault(ctx, "renew", r.Key, err)
	}
	return renewed[0], nil
}

// Release frees the lease on key if it is unexpired and carries exactly token, and
// reports whether it did.
func (s *Store) Release(ctx context.Context, key string, token lockfx.Token) (bool, error) {
	if err := check(ctx, "release", key, nil); err != nil {
		return false, err
	}
	return s.done(ctx, "release", key, releaseScript, token.String(), rand.Text())
}

// done runs a script that answers whether it did something.
func (s *Store) done(ctx context.Context, op, key string, script *redis.Script, args ...any) (bool, error) {
	reply, err := s.eval(ctx, script, []string{lockName(s.prefix, key)}, args...)
	var ok bool
	if err == nil {
		ok, err = doneOf(reply)
	}
	if err != nil {
		return false, fault(ctx, op, key, err)
	}
	return ok, nil
}
