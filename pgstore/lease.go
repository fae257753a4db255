package pgstore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/storekit"
)

var (
	_ lockfx.ManyRenewer = (*Store)(nil)
	_ lockfx.Inspector   = (*Store)(nil)
	_ lockfx.Breaker     = (*Store)(nil)
)

// Renew sets the time left of the lease on key to ttl if the lease is unexpired and
// carries exactly token, and reports whether it did. A renewal that shortens the
// lease wakes those who watch the key.
func (s *Store) Renew(ctx context.Context, key string, token lockfx.Token, ttl time.Duration) (bool, error) {
	r := s.RenewMany(ctx, []lockfx.Renewal{{Key: key, Token: token, TTL: ttl}})[0]
	return r.OK, r.Err
}

// RenewMany does for each element what [Store.Renew] does, in one statement.
func (s *Store) RenewMany(ctx context.Context, renewals []lockfx.Renewal) []lockfx.Result {
	results := make([]lockfx.Result, len(renewals))
	var keys []string
	var tokens, ttls []int64
	for i, r := range renewals {
		results[i].Err = storekit.Check(ctx, "renew", r.Key, lockfx.CheckTTL(r.TTL, resolution))
		if results[i].Err == nil {
			keys, tokens, ttls = append(keys, r.Key), append(tokens, int64(r.Token)), append(ttls, storekit.Micros(r.TTL))
		}
	}
	if len(keys) == 0 {
		return results
	}
	renewed := map[lease]bool{}
	_, err := s.call(ctx, request{
		statement: s.stmt.renew,
		args:      []any{keys, tokens, ttls, s.client, s.next(), s.memory, s.channel},
		read: func(rows pgx.Rows) error {
			var l lease
			_, err := pgx.ForEachRow(rows, []any{&l.key, &l.token, nil}, func() error {
				renewed[l] = true
				return nil
			})
			return err
		},
	})
	for i, r := range renewals {
		switch {
		case results[i].Err != nil:
		case err != nil:
			results[i].Err = fault(ctx, "renew", r.Key, err)
		default:
			results[i].OK = renewed[lease{r.Key, int64(r.Token)}]
		}
	}
	return results
}

type lease struct {
	key   string
	token int64
}

// Break frees the key whoever holds it, and reports whether there was an unexpired
// lease. The next token is greater than the broken one.
//
// It asks who holds the key, and then frees that lease and no other, in two round trips:
// a request that arrives late does nothing to a later holder.
func (s *Store) Break(ctx context.Context, key string) (bool, error) {
	if err := storekit.Check(ctx, "break", key, nil); err != nil {
		return false, err
	}
	for {
		var freed, doubt bool
		held, err := s.inspect(ctx, key)
		if err == nil && held.Token != 0 {
			doubt, err = s.call(ctx, request{statement: s.stmt.forced, args: []any{key, int64(held.Token), s.channel}, read: hasRow(&freed)})
		}
		switch {
		case err != nil:
			return false, fault(ctx, "break", key, err)
		case held.Token == 0:
			return false, nil
		case freed || doubt: // an attempt that was not answered may have freed it
			return true, nil
		}
	}
}

// Inspect returns the unexpired lease on key, or the zero Lease.
func (s *Store) Inspect(ctx context.Context, key string) (lockfx.Lease, error) {
	if err := storekit.Check(ctx, "inspect", key, nil); err != nil {
		return lockfx.Lease{}, err
	}
	lease, err := s.inspect(ctx, key)
	if err != nil {
		return lockfx.Lease{}, fault(ctx, "inspect", key, err)
	}
	return lease, nil
}

func (s *Store) inspect(ctx context.Context, key string) (lockfx.Lease, error) {
	var a answer
	_, err := s.call(ctx, request{statement: s.stmt.inspect, args: []any{key}, read: func(rows pgx.Rows) error {
		a = answer{}
		if !rows.Next() {
			return rows.Err()
		}
		return rows.Scan(&a.token, &a.label, &a.left)
	}})
	if err != nil || a.left <= 0 {
		return lockfx.Lease{}, err
	}
	return lockfx.Lease{Token: lockfx.Token(a.token), Label: a.label, TimeLeft: a.timeLeft()}, nil
}

// hasRow reads whether there is a row.
func hasRow(has *bool) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		*has = rows.Next()
		return rows.Err()
	}
}
