package redisstore

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/lockfx/lockfx"
)

var _ lockfx.ManyRenewer = (*Store)(nil)

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
	cmds, err := detached(ctx, &s.tasks, func() ([]*redis.Cmd, error) { return s.renewPipeline(ctx, renewals, sent), nil })
	for n, i := range sent {
		var ok bool
		failure := err
		if failure == nil {
			var reply any
			if reply, failure = cmds[n].Result(); failure == nil {
				ok, failure = doneOf(reply)
			}
		}
		if failure != nil {
			failure = fault(ctx, "renew", renewals[i].Key, failure)
		}
		results[i] = lockfx.Result{OK: ok, Err: failure}
	}
	return results
}

// renewPipeline sends the renewals of the given indices. Those that a server answers
// with NOSCRIPT are sent again with the script itself.
func (s *Store) renewPipeline(ctx context.Context, renewals []lockfx.Renewal, sent []int) []*redis.Cmd {
	cmds := make([]*redis.Cmd, len(sent))
	send := func(run func(redis.Scripter, []string, ...any) *redis.Cmd, which func(n int) bool) {
		pipe := s.client.Pipeline()
		for n, i := range sent {
			if which(n) {
				r := renewals[i]
				cmds[n] = run(pipe, []string{lockName(s.prefix, r.Key)}, r.Token.String(), microsOf(r.TTL), s.memory)
			}
		}
		if pipe.Len() > 0 {
			_, _ = pipe.Exec(ctx) // each command has its own error
		}
	}
	send(func(c redis.Scripter, keys []string, args ...any) *redis.Cmd {
		return renewScript.EvalSha(ctx, c, keys, args...)
	}, func(int) bool { return true })
	send(func(c redis.Scripter, keys []string, args ...any) *redis.Cmd {
		return renewScript.Eval(ctx, c, keys, args...)
	}, func(n int) bool { return redis.HasErrorPrefix(cmds[n].Err(), "NOSCRIPT") })
	return cmds
}
