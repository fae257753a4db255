package redisstore

import (
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfx/lockfx"
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
		results[i].Err = check(ctx, "renew", r.Key, lockfx.CheckTTL(r.TTL, resolution))
		if results[i].Err == nil {
			sent = append(sent, i)
		}
	}
	if len(sent) == 0 {
		return results
	}
	batches, err := detached(ctx, &s.tasks, func() ([]batch, error) { return s.renewBatches(ctx, renewals, sent), nil })
	if err != nil {
		for _, i := range sent {
			results[i].Err = fault(ctx, "renew", renewals[i].Key, err)
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
				results[i].Err = fault(ctx, "renew", renewals[i].Key, err)
				continue
			}
			results[i].OK = done[j]
		}
	}
	return results
}

// renewGathered is RenewMany that, like eval, does not leave its renewals to a
// connection that hangs, if the client minds deadlines.
func (s *Store) renewGathered(ctx context.Context, renewals []lockfx.Renewal) []lockfx.Result {
	if s.mindful && s.prompt.Load() {
		short := impatient{ctx, time.Now().Add(patience)}
		results := s.RenewMany(short, renewals)
		failed := slices.ContainsFunc(results, func(r lockfx.Result) bool { return r.Err != nil })
		if !failed || !short.over() || ctx.Err() != nil {
			return results
		}
	}
	return s.RenewMany(ctx, renewals)
}

// renewBatches sends the renewals at the indices in batches: of one in a cluster,
// where a script reaches one slot. That a plain client has a cluster before it, of one
// node or behind a proxy, is learnt from its first refusal.
func (s *Store) renewBatches(ctx context.Context, renewals []lockfx.Renewal, sent []int) []batch {
	if s.reachesAll() {
		batches := s.pipeline(ctx, renewals, slices.Collect(slices.Chunk(sent, most)))
		if !slices.ContainsFunc(batches, func(b batch) bool { return redis.HasErrorPrefix(b.reply.Err(), "CROSSSLOT") }) {
			return batches
		}
		s.slotted.Store(true)
	}
	return s.pipeline(ctx, renewals, slices.Collect(slices.Chunk(sent, 1)))
}

// reachesAll reports whether a script can reach locks of any slot, as far as is known.
func (s *Store) reachesAll() bool {
	_, single := s.client.(*redis.Client)
	return single && !s.slotted.Load()
}

// pipeline sends a script for each chunk. Those that a server answers with NOSCRIPT
// are sent again with the script itself.
func (s *Store) pipeline(ctx context.Context, renewals []lockfx.Renewal, chunks [][]int) []batch {
	batches := make([]batch, len(chunks))
	pipe := s.client.Pipeline()
	for n, indices := range chunks {
		keys, args := s.renewArgs(renewals, indices)
		batches[n] = batch{indices, renewScript.EvalSha(ctx, pipe, keys, args...)}
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	pipe = s.client.Pipeline()
	for n, b := range batches {
		if redis.HasErrorPrefix(b.reply.Err(), "NOSCRIPT") {
			keys, args := s.renewArgs(renewals, b.indices)
			batches[n].reply = renewScript.Eval(ctx, pipe, keys, args...)
		}
	}
	if pipe.Len() > 0 {
		_, _ = pipe.Exec(ctx)
	}
	return batches
}

// renewArgs returns the keys and arguments of renew.lua.
func (s *Store) renewArgs(renewals []lockfx.Renewal, indices []int) (keys []string, args []any) {
	keys = make([]string, len(indices))
	args = make([]any, 1, 1+2*len(indices))
	args[0] = s.memory
	for j, i := range indices {
		r := renewals[i]
		keys[j] = lockName(s.prefix, r.Key)
		args = append(args, int64(r.Token), microsOf(r.TTL))
	}
	return keys, args
}
