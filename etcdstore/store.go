package etcdstore

import (
	"context"
	"crypto/rand"
	"errors"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/storekit"
)

// Store is a [lockfx.Store] over etcd that can also watch, inspect and break. It is
// safe for concurrent use. Make one with [New].
//
// An error matches the end of the call's ctx, whatever else went wrong,
// [lockfx.ErrConfig] for a key or a ttl that breaks a rule, [lockfx.ErrBadGrant] for an
// answer that is none, or [lockfx.ErrStore] for everything else that etcd or its client
// reports, and for an answer that takes longer than 5 s; a renewal waits for it until the
// deadline of its ctx. The shortest ttl is 1 s; fractions of a second
// are rounded up.
type Store struct {
	client *clientv3.Client
	leases pb.LeaseClient // for what the client can't do: choose the id of a lease
	prefix string
	// minimum is the shortest ttl of this cluster, in seconds, as far as it was met.
	minimum atomic.Int64

	tasks  storekit.Tasks
	keeper keeper
	holds  holds
	pool   pool
	hub    hub
}

var _ lockfx.Store = (*Store)(nil)

// New returns a store over client, which it never closes. It asks etcd nothing. The
// error matches [lockfx.ErrConfig] and names all faults; a nil client is one.
//
// The store uses the client's KV and Watcher, so a namespace put there applies.
func New(client *clientv3.Client, opts ...Option) (*Store, error) {
	settings, clientFault := settings{prefix: defaultPrefix}, ""
	if client == nil || client.ActiveConnection() == nil {
		clientFault = "the client must be one that clientv3.New made"
	}
	apply := func(opt Option) error { return opt.apply(&settings) }
	if err := storekit.Settle("etcdstore", opts, apply, clientFault); err != nil {
		return nil, err
	}
	s := &Store{client: client, leases: pb.NewLeaseClient(client.ActiveConnection()), prefix: settings.prefix}
	s.pool.ahead = settings.pool
	s.keeper.tasks, s.keeper.stale = &s.tasks, s.stale
	s.keeper.open = func(ctx context.Context) (pb.Lease_LeaseKeepAliveClient, error) { return s.leases.LeaseKeepAlive(ctx) }
	s.hub.tasks, s.hub.stale, s.hub.open, s.hub.ask = &s.tasks, s.stale, s.watchEnds, s.askProgress
	s.hub.name = rand.Text()
	return s, nil
}

// From returns a store over client with default options. It has the form that
// fxlock.StoreFrom takes:
//
//	fxlock.StoreFrom(etcdstore.From)
func From(client *clientv3.Client) (*Store, error) { return New(client) }

// Acquire takes the lease on key for ttl if the key is free. Otherwise the grant
// names the label of the holder and the time left, rounded up to a whole second. A
// key whose lease has expired is free once etcd has noticed, which it does every half
// second.
//
// When it returns an error, whether a lease was granted is unknown, so it is undone
// on a context of its own: see the package's documentation.
func (s *Store) Acquire(ctx context.Context, key string, ttl time.Duration) (lockfx.Grant, error) {
	if err := storekit.Check(ctx, "acquire", key, checkTTL(ttl)); err != nil {
		return lockfx.Grant{}, err
	}
	call, cancel := s.bounded(ctx, patience)
	defer cancel()
	grant, err := s.acquire(call, nameOf(s.prefix, key), secondsOf(ttl))
	if err != nil {
		return lockfx.Grant{}, fault(ctx, "acquire", key, err)
	}
	return grant, nil
}

func (s *Store) acquire(ctx context.Context, name string, seconds int64) (lockfx.Grant, error) {
	if l, ok := s.ready(seconds); ok {
		grant, err := s.claim(ctx, name, l, s.keepAliveMeanwhile(ctx, l.id, share))
		if !errors.Is(err, rpctypes.ErrLeaseNotFound) {
			return grant, err
		}
	}
	l, err := s.grant(ctx, seconds)
	if err != nil {
		return lockfx.Grant{}, err
	}
	return s.claim(ctx, name, l, nil)
}

// claim puts the key under l if the key is free. alive tells that l lasts for its
// whole ttl, unless l was granted just now.
func (s *Store) claim(ctx context.Context, name string, l lease, alive <-chan kept) (lockfx.Grant, error) {
	token, other, err := s.put(ctx, name, &l)
	if alive != nil {
		k := <-alive
		l.since, l.spoilt = k.asked, l.spoilt || k.doubt
		if err == nil && other == nil { // a refusal stands without it
			err = k.err
		}
	}
	switch {
	case errors.Is(err, rpctypes.ErrLeaseNotFound):
		return lockfx.Grant{}, err
	case err != nil:
		s.undo(ctx, l.id)
		return lockfx.Grant{}, err
	case token.Valid():
		s.holds.put(hold{name, token}, l)
		return lockfx.Grant{OK: true, Token: token}, nil
	}
	s.giveBack(ctx, l)
	left, err := s.timeLeft(ctx, clientv3.LeaseID(other.Lease))
	return lockfx.Grant{HeldBy: string(other.Value), RetryAfter: max(left, soon)}, err
}

// Renew sets the time left of the lease on key to ttl if the key carries exactly
// token and its lease is alive, and reports whether it did. A ttl other than before
// costs two requests more: etcd can't change that of a lease, so the key moves to
// another one. So it does if etcd does not answer the request to keep its lease alive.
func (s *Store) Renew(ctx context.Context, key string, token lockfx.Token, ttl time.Duration) (bool, error) {
	if err := storekit.Check(ctx, "renew", key, checkTTL(ttl)); err != nil {
		return false, err
	}
	if !token.Valid() {
		return false, nil
	}
	call, cancel := s.bounded(ctx, untilDeadline(ctx))
	defer cancel()
	ok, err := s.renew(call, hold{nameOf(s.prefix, key), token}, secondsOf(ttl))
	if err != nil {
		return false, fault(ctx, "renew", key, err)
	}
	return ok, nil
}

func (s *Store) renew(ctx context.Context, h hold, seconds int64) (bool, error) {
	known, ok := s.holds.get(h)
	var alive <-chan kept
	stream, cancel := context.WithTimeout(ctx, share(ctx)) // then the key moves
	defer cancel()
	if ok {
		alive = s.keepAliveMeanwhile(stream, known.id, whole)
	}
	id, err := s.leaseOf(ctx, h)
	var k kept
	if ok {
		k = <-alive
		if k.doubt && !known.spoilt { // a request may be on its way still, whatever comes
			known.spoilt = true
			s.holds.put(h, known)
		}
	}
	if err == nil && id != 0 && id != known.id { // it was taken or moved through another handle
		known = lease{id: id, spoilt: true} // what that one knows of it is unknown
		k = s.keepAlive(stream, id, whole)
	}
	switch {
	case err != nil:
		return false, err
	case id == 0 || errors.Is(k.err, rpctypes.ErrLeaseNotFound):
		s.holds.take(h)
		return false, nil
	case k.err != nil && !passes(k.err):
		return false, k.err
	case k.err != nil: // the stream is dead, say, and needs a password each time; a move needs none
		return s.move(ctx, h, known.id, seconds)
	case k.seconds != seconds && k.seconds != max(seconds, s.minimum.Load()):
		return s.move(ctx, h, known.id, seconds)
	}
	known.seconds, known.since = k.seconds, k.asked
	s.holds.put(h, known)
	return true, nil
}

// Release frees the key if it carries exactly token, and reports whether it did. The
// lease of etcd that carried it is given back in the background.
//
// If the connection broke and a later attempt found the key free or taken, whether
// the first one freed it is unknown: an error.
func (s *Store) Release(ctx context.Context, key string, token lockfx.Token) (bool, error) {
	if err := storekit.Check(ctx, "release", key, nil); err != nil {
		return false, err
	}
	if !token.Valid() {
		return false, nil
	}
	call, cancel := s.bounded(ctx, patience)
	defer cancel()
	ok, err := s.release(call, hold{nameOf(s.prefix, key), token})
	if err != nil {
		return false, fault(ctx, "release", key, err)
	}
	return ok, nil
}

func (s *Store) release(ctx context.Context, h hold) (bool, error) {
	l, known := s.holds.take(h)
	id, doubt, err := s.free(ctx, h)
	switch {
	case err != nil:
		return false, err
	case id == none:
		return false, nil
	case known && l.id == id && !doubt:
		s.giveBack(ctx, l)
	default:
		s.discard(ctx, id)
	}
	return true, nil
}

var errDoubt = errors.New("the connection broke, so whether an earlier attempt freed the key is unknown")
