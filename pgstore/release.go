package pgstore

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/storekit"
)

// Release frees the lease on key if it is unexpired and carries exactly token, and
// reports whether it did. The server answers before the release is on its disk: one that
// a crash of the server undoes is a lease that runs out.
func (s *Store) Release(ctx context.Context, key string, token lockfx.Token) (bool, error) {
	if err := storekit.Check(ctx, "release", key, nil); err != nil {
		return false, err
	}
	var freed bool
	doubt, err := s.call(ctx, request{statement: s.stmt.release, args: []any{key, int64(token), s.channel}, read: hasRow(&freed)})
	if err == nil && !freed && doubt {
		freed, err = s.released(ctx, key, token)
	}
	if err != nil {
		return false, fault(ctx, "release", key, err)
	}
	return freed, nil
}

var errReleaseInDoubt = errors.New("an attempt was not answered, and the key has been taken since: the lease was released, or had expired")

// released reports whether a release took place that was not answered, when another
// attempt at it has found no lease.
func (s *Store) released(ctx context.Context, key string, token lockfx.Token) (freed bool, err error) {
	known := false
	_, err = s.call(ctx, request{statement: s.stmt.released, args: []any{key, int64(token)}, read: func(rows pgx.Rows) error {
		if known = rows.Next(); !known {
			return rows.Err()
		}
		return rows.Scan(&freed)
	}})
	if err == nil && !known {
		err = errReleaseInDoubt
	}
	return freed, err
}
