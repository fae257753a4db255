package pgstore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lockfx/lockfx"
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
		results[i].Err = check(ctx, "renew", r.Key, lockfx.CheckTTL(r.TTL, resolution))
		if results[i].Err == nil {
			keys, tokens, ttls = append(keys, r.Key), append(tokens, int64(r.Token)), append(ttls, microsOf(r.TTL))
		}
	}
	if len(keys) == 0 {
		return results
	}
	renewed := map[lease]bool{}
	_, err := s.transact(ctx, func(rows pgx.Rows) error {
		var l lease
		_, err := pgx.ForEachRow(rows, []any{&l.key, &l.token, nil}, func() error {
			renewed[l] = true
			return nil
		})
		return err
	}, []any{keys, tokens, ttls, s.memory, s.channel}, s.stmt.renew)
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

// Release frees the lease on key if it is unexpired and carries exactly token, and
// reports whether it did.
func (s *Store) Release(ctx context.Context, key string, token lockfx.Token) (bool, error) {
	return s.free(ctx, "release", key, []any{key, int64(token), s.channel}, s.stmt.release)
}

// Break frees the key whoever holds it, and reports whether there was an unexpired
// lease. The next token is greater than the broken one.
func (s *Store) Break(ctx context.Context, key string) (bool, error) {
	return s.free(ctx, "break", key, []any{key, s.channel}, s.stmt.forced)
}

// free runs a statement that answers a row if it freed a lease.
func (s *Store) free(ctx context.Context, op, key string, args []any, stmt statement) (freed bool, err error) {
	if err := check(ctx, op, key, nil); err != nil {
		return false, err
	}
	_, err = s.transact(ctx, func(rows pgx.Rows) error {
		freed = rows.Next()
		return nil
	}, args, stmt)
	if err != nil {
		return false, fault(ctx, op, key, err)
	}
	return freed, nil
}

// Inspect returns the unexpired lease on key, or the zero Lease.
func (s *Store) Inspect(ctx context.Context, key string) (lockfx.Lease, error) {
	if err := check(ctx, "inspect", key, nil); err != nil {
		return lockfx.Lease{}, err
	}
	var a answer
	_, err := s.transact(ctx, func(rows pgx.Rows) error {
		a = answer{}
		if !rows.Next() {
			return nil
		}
		return rows.Scan(&a.token, &a.label, &a.left)
	}, []any{key}, s.stmt.inspect)
	switch {
	case err != nil:
		return lockfx.Lease{}, fault(ctx, "inspect", key, err)
	case a.left <= 0:
		return lockfx.Lease{}, nil
	}
	return lockfx.Lease{Token: lockfx.Token(a.token), Label: a.label, TimeLeft: a.timeLeft()}, nil
}
