package redisstore

import (
	"context"
	"crypto/rand"
	"reflect"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/storekit"
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
// A call returns when its ctx ends, or within 100 ms after that. A request without an
// answer is sent again, over another connection, after 100 ms, and then after half as long
// again each time; so a connection that is dead and does not show it costs no lease. What
// arrives twice or late is recognised. An answer of a replica is no answer: for a second,
// another server is looked for.
//
// The client may be busy with a call for as long as its own timeouts allow; Close waits
// for that. Calls are cheapest with a client whose option ContextTimeoutEnabled is true.
type Store struct {
	client  redis.UniversalClient
	prefix  string
	memory  int64 // microseconds
	tasks   storekit.Tasks
	watches storekit.Watches
	beats   gatherer

	id       string       // tells the renewals of this store from those of others
	renewals atomic.Int64 // counts them

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
	o := settings{prefix: defaultPrefix, memory: defaultMemory}
	apply := func(opt Option) error { return opt.apply(&o) }
	if err := storekit.Settle("redisstore", opts, apply, clientFault(client)); err != nil {
		return nil, err
	}
	s := &Store{client: client, prefix: o.prefix, memory: o.memory.Microseconds(), id: newID(), mindful: mindsDeadlines(client)}
	s.watches.Listen, s.watches.Tasks = s.listen, &s.tasks
	s.beats.send, s.beats.tasks = s.RenewMany, &s.tasks
	return s, nil
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
	if err := storekit.Check(ctx, "acquire", key, lockfx.CheckTTL(ttl, resolution)); err != nil {
		return lockfx.Grant{}, err
	}
	lock := lockName(s.prefix, key)
	for {
		tag := newID()
		reply, err := ask(ctx, s, func(ctx context.Context, again bool) (any, error) {
			return s.sendAcquire(ctx, lock, tag, ttl, again)
		})
		var grant lockfx.Grant
		if err == nil {
			grant, err = grantOf(reply)
		}
		switch {
		case err == nil:
			return grant, nil
		case redis.HasErrorPrefix(err, "UNDONE") && ctx.Err() == nil:
			continue // an earlier request of this acquisition was granted, and its lease has ended
		}
		s.undo(ctx, lock, tag)
		return lockfx.Grant{}, storekit.Fault(ctx, "acquire", key, err)
	}
}

func (s *Store) sendAcquire(ctx context.Context, lock, tag string, ttl time.Duration, again bool) (any, error) {
	sent := new(sending)
	if again {
		sent.times++
	}
	keys := []string{lock, undoneName(lock, tag)}
	args := []any{storekit.Micros(ttl), tag, lockfx.LabelFrom(ctx), s.memory, sent}
	cmd := acquireScript.EvalSha(ctx, s.client, keys, args...)
	if redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
		sent.times-- // this request was answered, and did nothing
		cmd = acquireScript.Eval(ctx, s.client, keys, args...)
	}
	return cmd.Result()
}

// sending is an argument that says whether its request was, or may have been, sent before:
// a client that sends a request again writes its arguments anew.
type sending struct{ times int }

// MarshalBinary returns what acquire.lua takes.
func (s *sending) MarshalBinary() ([]byte, error) {
	s.times++
	if s.times == 1 {
		return nil, nil
	}
	return strconv.AppendInt(nil, tombstone.Milliseconds(), 10), nil
}

// newID returns 13 letters and digits that nobody else has.
func newID() string { return rand.Text()[:13] }

// Renew sets the time left of the lease on key to ttl if the lease is unexpired and
// carries exactly token, and reports whether it did. A renewal that shortens the
// lease wakes those who watch the key. One that arrives after a later one of the same
// store changes nothing.
//
// Renewals of many locks at one moment are gathered, as if by [Store.RenewMany]: one that
// comes while another is under way waits for its answer, for 25 ms at most. In a cluster
// they are not: a node that hangs must not cost the leases on the others.
func (s *Store) Renew(ctx context.Context, key string, token lockfx.Token, ttl time.Duration) (bool, error) {
	if err := storekit.Check(ctx, "renew", key, lockfx.CheckTTL(ttl, resolution)); err != nil {
		return false, err
	}
	r := lockfx.Renewal{Key: key, Token: token, TTL: ttl}
	if !s.reachesAll() {
		return s.renewAlone(ctx, r)
	}
	return s.beats.renew(ctx, r, func() (bool, error) { return s.renewAlone(ctx, r) })
}

func (s *Store) renewAlone(ctx context.Context, r lockfx.Renewal) (bool, error) {
	keys, args := s.number([]lockfx.Renewal{r}).args([]int{0})
	reply, err := s.eval(ctx, renewScript, keys, args...)
	var renewed []bool
	if err == nil {
		renewed, err = renewedOf(reply, 1)
	}
	if err != nil {
		return false, storekit.Fault(ctx, "renew", r.Key, err)
	}
	return renewed[0], nil
}

// Release frees the lease on key if it is unexpired and carries exactly token, and
// reports whether it did. A release whose answer was lost is recognised for a minute when
// it is sent again; when a call has taken half of that, and would say false, it is an
// error, since nobody knows any more.
func (s *Store) Release(ctx context.Context, key string, token lockfx.Token) (bool, error) {
	if err := storekit.Check(ctx, "release", key, nil); err != nil {
		return false, err
	}
	return s.free(ctx, "release", key, token)
}
