package redisstore

import (
	"context"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/lockfx/lockfx"
)

var _ lockfx.ManyRenewer = (*Store)(nil)

// batch is how many leases one script renews on a server that is no cluster. Nobody
// else is served meanwhile: some hundred microseconds.
const batch = 100

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
	size := 1 // in a cluster a script reaches one slot
	if _, single := s.client.(*redis.Client); single {
		size = batch
	}
	batches := slices.Collect(slices.Chunk(sent, size))
	cmds, err := detached(ctx, &s.tasks, func() ([]*redis.Cmd, error) { return s.pipeline(ctx, renewals, batches), nil })
	for n, indices := range batches {
		var done []bool
		failure := err
		if failure == nil {
			var reply any
			if reply, failure = cmds[n].Result(); failure == nil {
				done, failure = renewedOf(reply, len(indices))
			}
		}
		for j, i := range indices {
			if failure != nil {
				results[i].Err = fault(ctx, "renew", renewals[i].Key, failure)
				continue
			}
			results[i].OK = done[j]
		}
	}
	return results
}

// pipeline sends the batches. Those that a server answers with NOSCRIPT are sent
// again with the script itself.
func (s *Store) pipeline(ctx context.Context, renewals []lockfx.Renewal, batches [][]int) []*redis.Cmd {
	cmds := make([]*redis.Cmd, len(batches))
	pipe := s.client.Pipeline()
	for n, indices := range batches {
		keys, args := s.renewArgs(renewals, indices)
		cmds[n] = renewScript.EvalSha(ctx, pipe, keys, args...)
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	pipe = s.client.Pipeline()
	for n, indices := range batches {
		if redis.HasErrorPrefix(cmds[n].Err(), "NOSCRIPT") {
			keys, args := s.renewArgs(renewals, indices)
			cmds[n] = renewScript.Eval(ctx, pipe, keys, args...)
		}
	}
	if pipe.Len() > 0 {
		_, _ = pipe.Exec(ctx)
	}
	return cmds
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
