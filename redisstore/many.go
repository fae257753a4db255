package redisstore

import (
	"context"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/storekit"
)

var _ lockfx.ManyRenewer = (*Store)(nil)

// most is how many leases one script renews on a server that is no cluster. Nobody
// else is served meanwhile: some hundred microseconds.
const most = 100

// batch is the leases that one script renews.
type batch struct {
	indices []int // in what RenewMany was given
	reply   *redis.Cmd
}

// RenewMany does for each element what [Store.Renew] does, in one pipeline; in a
// cluster, in one pipeline for each node.
func (s *Store) RenewMany(ctx context.Context, renewals []lockfx.Renewal) []lockfx.Result {
	results := make([]lockfx.Result, len(renewals))
	var sent []int // the indices of those that break no rule
	for i, r := range renewals {
		results[i].Err = storekit.Check(ctx, "renew", r.Key, lockfx.CheckTTL(r.TTL, resolution))
		if results[i].Err == nil {
			sent = append(sent, i)
		}
	}
	if len(sent) == 0 {
		return results
	}
	numbered := s.number(renewals)
	batches, err := ask(ctx, s, func(ctx context.Context, _ bool) ([]batch, error) {
		return s.renewBatches(ctx, numbered, sent)
	})
	if batches == nil {
		for _, i := range sent {
			results[i].Err = storekit.Fault(ctx, "renew", renewals[i].Key, err)
		}
	}
	for _, b := range batches {
		reply, err := b.reply.Result()
		var done []bool
		if err == nil {
			done, err = renewedOf(reply, len(b.indices))
		}
		for j, i := range b.indices {
			if err != nil {
				results[i].Err = storekit.Fault(ctx, "renew", renewals[i].Key, err)
				continue
			}
			results[i].OK = done[j]
		}
	}
	return results
}

// renewBatches sends the renewals at the indices in batches, and those of a batch that the
// server refuses one by one: one record of another type, or one key that this user may not
// touch, fails alone. In a cluster, where a script reaches one slot, batches are of one.
// That a plain client has a cluster before it, of one node or behind a proxy, is learnt
// from its first refusal.
//
// The error is that of a batch without an answer from a server that can give one.
func (s *Store) renewBatches(ctx context.Context, r numbered, sent []int) ([]batch, error) {
	size := 1
	if s.reachesAll() {
		size = most
	}
	var apart []int
	batches := slices.DeleteFunc(r.pipeline(ctx, sent, size), func(b batch) bool {
		split := len(b.indices) > 1 && refused(b.reply.Err()) && !unanswered(b)
		if split {
			apart = append(apart, b.indices...)
		}
		if redis.HasErrorPrefix(b.reply.Err(), "CROSSSLOT") {
			s.slotted.Store(true)
		}
		return split
	})
	if len(apart) > 0 {
		batches = append(batches, r.pipeline(ctx, apart, 1)...)
	}
	if i := slices.IndexFunc(batches, unanswered); i >= 0 {
		return batches, batches[i].reply.Err()
	}
	return batches, nil
}

// unanswered reports whether another connection may have an answer.
func unanswered(b batch) bool {
	err := b.reply.Err()
	return err != nil && !refused(err) || fromReplica(err)
}

// reachesAll reports whether a script can reach locks of any slot, as far as is known.
func (s *Store) reachesAll() bool {
	_, single := s.client.(*redis.Client)
	return single && !s.slotted.Load()
}

// pipeline sends a script for each size renewals. Those that a server answers with
// NOSCRIPT are sent again with the script itself.
func (r numbered) pipeline(ctx context.Context, sent []int, size int) []batch {
	var batches []batch
	pipe := r.store.client.Pipeline()
	for indices := range slices.Chunk(sent, size) {
		keys, args := r.args(indices)
		batches = append(batches, batch{indices, renewScript.EvalSha(ctx, pipe, keys, args...)})
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	pipe = r.store.client.Pipeline()
	for n, b := range batches {
		if redis.HasErrorPrefix(b.reply.Err(), "NOSCRIPT") {
			keys, args := r.args(b.indices)
			batches[n].reply = renewScript.Eval(ctx, pipe, keys, args...)
		}
	}
	if pipe.Len() > 0 {
		_, _ = pipe.Exec(ctx)
	}
	return batches
}

// numbered is renewals with a number by which the server tells a late request from a later
// one. They keep it however often they are sent.
type numbered struct {
	store    *Store
	renewals []lockfx.Renewal
	number   int64
}

func (s *Store) number(renewals []lockfx.Renewal) numbered {
	return numbered{s, renewals, s.renewals.Add(1)}
}

// args returns the keys and arguments of renew.lua.
func (r numbered) args(indices []int) (keys []string, args []any) {
	keys = make([]string, len(indices))
	args = make([]any, 3, 3+2*len(indices))
	args[0], args[1], args[2] = r.store.memory, r.store.id, r.number
	for j, i := range indices {
		one := r.renewals[i]
		keys[j] = lockName(r.store.prefix, one.Key)
		args = append(args, int64(one.Token), storekit.Micros(one.TTL))
	}
	return keys, args
}
