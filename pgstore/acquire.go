package pgstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/storekit"
)

// answer is the row of acquire.sql, and of inspect.sql without the first column.
type answer struct {
	granted bool
	token   int64
	label   string
	left    int64 // microseconds
}

// Acquire takes the lease on key for ttl if the key is free or its lease expired.
// Otherwise the grant names the label of the holder and the time left. The label is
// that of ctx, without NUL and invalid UTF-8.
//
// When the outcome is unknown, because ctx ended or the connection broke on the way,
// the acquisition is undone: see the package's documentation.
func (s *Store) Acquire(ctx context.Context, key string, ttl time.Duration) (lockfx.Grant, error) {
	if err := storekit.Check(ctx, "acquire", key, lockfx.CheckTTL(ttl, resolution)); err != nil {
		return lockfx.Grant{}, err
	}
	for again := 0; ; {
		number := s.next() // another one each time: an earlier request may still be on its way
		a, doubt, err := s.ask(ctx, key, number, ttl)
		if err == nil && ctx.Err() != nil {
			doubt, err = a.granted, ctx.Err()
		}
		switch {
		case err == nil && a.left > 0:
			return a.grant(), nil
		case err == nil:
			// No verdict: somebody else won a race that this statement could not see, or
			// the lease ended before its end was read, or the request was overtaken.
		case doubt && again <= s.most && ctx.Err() == nil && !errors.Is(err, lockfx.ErrBadGrant) && s.bury(ctx, key, number) == nil:
			again++ // the connection was of no use, and there is another
		default:
			if doubt {
				s.undo(ctx, key, number)
			}
			return lockfx.Grant{}, fault(ctx, "acquire", key, err)
		}
	}
}

// ask sends an acquisition once. Now and then it takes the sweep along.
func (s *Store) ask(ctx context.Context, key string, number int64, ttl time.Duration) (a answer, doubt bool, err error) {
	doubt, err = s.call(ctx, request{
		statement: s.stmt.acquire,
		args:      []any{key, s.client, number, labelOf(ctx), storekit.Micros(ttl), s.memory},
		sweep:     rand.N(sweepEvery) == 0,
		read: func(rows pgx.Rows) error {
			a = answer{}
			if !rows.Next() {
				return rows.Err()
			}
			if err := rows.Scan(&a.granted, &a.token, &a.label, &a.left); err != nil {
				return err
			}
			if a.granted && a.token < 1 {
				return fmt.Errorf("token %d", a.token)
			}
			return nil
		},
	})
	return a, doubt || errors.Is(err, lockfx.ErrBadGrant), err
}

// sweepEvery is the number of acquisitions that share one sweep. Each sweep deletes
// more rows than they can have made.
const sweepEvery = 16

func (a answer) grant() lockfx.Grant {
	if a.granted {
		return lockfx.Grant{OK: true, Token: lockfx.Token(a.token)}
	}
	return lockfx.Grant{HeldBy: a.label, RetryAfter: a.timeLeft()}
}

func (a answer) timeLeft() time.Duration { return time.Duration(a.left) * time.Microsecond }

// labelOf returns the label of ctx in a form that the server takes: a label must
// never be the reason that nothing is granted.
func labelOf(ctx context.Context) string {
	return strings.ReplaceAll(strings.ToValidUTF8(lockfx.LabelFrom(ctx), ""), "\x00", "")
}
