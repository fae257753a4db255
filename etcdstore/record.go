package etcdstore

import (
	"context"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockfx/lockfx"
)

// A record is a key of etcd:
//
//	name             the prefix and the key
//	value            the label of the holder
//	create revision  the token, which moving the record to another lease keeps
//	lease            its end
//
// Whatever decides about it is one transaction.

// none says that there was no record to free.
const none clientv3.LeaseID = -1

// put writes the record of name under l if there is none, and returns its token, or
// the record that is in the way.
func (s *Store) put(ctx context.Context, name string, l *lease) (lockfx.Token, *mvccpb.KeyValue, error) {
	answer, doubt, err := persist(ctx, func(ctx context.Context) (*clientv3.TxnResponse, error) {
		return s.client.Txn(ctx).
			If(clientv3.Compare(clientv3.CreateRevision(name), "=", 0)).
			Then(clientv3.OpPut(name, lockfx.LabelFrom(ctx), clientv3.WithLease(l.id))).
			Else(clientv3.OpGet(name)).
			Commit()
	})
	l.spoilt = l.spoilt || doubt
	if err != nil {
		return 0, nil, err
	}
	if answer.Succeeded {
		return lockfx.Token(answer.Header.Revision), nil, nil
	}
	found := answer.Responses[0].GetResponseRange()
	if found == nil || len(found.Kvs) != 1 {
		return 0, nil, fmt.Errorf("%w: a record is in the way, and is not", lockfx.ErrBadGrant)
	}
	other := found.Kvs[0]
	if clientv3.LeaseID(other.Lease) == l.id { // an earlier attempt of ours
		return lockfx.Token(other.CreateRevision), nil, nil
	}
	return 0, other, nil
}

// leaseOf returns the lease of a hold, or 0 if there is no such hold any more.
func (s *Store) leaseOf(ctx context.Context, h hold) (clientv3.LeaseID, error) {
	record, err := s.get(ctx, h.name)
	if err != nil || record == nil || lockfx.Token(record.CreateRevision) != h.token {
		return 0, err
	}
	return clientv3.LeaseID(record.Lease), nil
}

// get returns the record of name, or nil.
func (s *Store) get(ctx context.Context, name string) (*mvccpb.KeyValue, error) {
	answer, _, err := persist(ctx, func(ctx context.Context) (*clientv3.GetResponse, error) { return s.client.Get(ctx, name) })
	if err != nil || len(answer.Kvs) == 0 {
		return nil, err
	}
	return answer.Kvs[0], nil
}

// move puts the record of a hold under a new lease. If that is in doubt, the new lease
// stays: the record may be under it.
//
// The record must be under the lease that was seen, so that a request that arrives late
// does not undo what a later renewal did.
func (s *Store) move(ctx context.Context, h hold, from clientv3.LeaseID, seconds int64) (bool, error) {
	to, err := s.grant(ctx, seconds)
	if err != nil {
		return false, err
	}
	for {
		answer, doubt, err := persist(ctx, func(ctx context.Context) (*clientv3.TxnResponse, error) {
			return s.client.Txn(ctx).
				If(clientv3.Compare(clientv3.CreateRevision(h.name), "=", int64(h.token)), clientv3.Compare(clientv3.LeaseValue(h.name), "=", from)).
				Then(clientv3.OpPut(h.name, "", clientv3.WithIgnoreValue(), clientv3.WithLease(to.id))).
				Else(clientv3.OpGet(h.name)).
				Commit()
		})
		if err != nil {
			return false, err
		}
		to.spoilt = to.spoilt || doubt
		if !answer.Succeeded {
			found := answer.Responses[0].GetResponseRange().GetKvs()
			if len(found) == 0 || lockfx.Token(found[0].CreateRevision) != h.token {
				s.holds.take(h)
				s.discard(ctx, to.id)
				return false, nil
			}
			if now := clientv3.LeaseID(found[0].Lease); now != to.id { // else it was an earlier attempt
				from = now
				continue
			}
		}
		s.holds.put(h, to)
		s.discard(ctx, from)
		return true, nil
	}
}

// free deletes the record of a hold, and returns the lease that it was under, or none.
func (s *Store) free(ctx context.Context, h hold) (id clientv3.LeaseID, doubt bool, err error) {
	answer, doubt, err := persist(ctx, func(ctx context.Context) (*clientv3.TxnResponse, error) {
		return s.client.Txn(ctx).
			If(clientv3.Compare(clientv3.CreateRevision(h.name), "=", int64(h.token))).
			Then(clientv3.OpDelete(h.name, clientv3.WithPrevKV())).
			Commit()
	})
	switch {
	case err != nil:
		return none, doubt, err
	case !answer.Succeeded && doubt:
		return none, doubt, errDoubt
	case !answer.Succeeded:
		return none, doubt, nil
	}
	deleted := answer.Responses[0].GetResponseDeleteRange()
	if deleted == nil || len(deleted.PrevKvs) != 1 {
		return none, doubt, fmt.Errorf("%w: a record was deleted, and was not", lockfx.ErrBadGrant)
	}
	return clientv3.LeaseID(deleted.PrevKvs[0].Lease), doubt, nil
}
