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
// that of ctx, without NUL and invalid UTF-8, and at most 200 bytes of it.
//
// When the outcome is unknown, because ctx ended or the connection broke on the way,
// the acquisition is undone: see the package's documentation.
func (s *Store) Acquire(ctx context.Context, key string, ttl time.Duration) (lockfx.Grant, error) {
	if err := check(ctx, "acquire", key, lockfx.CheckTTL(ttl, resolution)); err != nil {
		return lockfx.Grant{}, err
	}
	for again := true; ; {
		tag := rand.Int64() // another one each time: an earlier request may still be on its way
		a, unsettled, err := s.ask(ctx, key, tag, ttl)
		if err == nil && ctx.Err() != nil {
			unsettled, err = a.granted, ctx.Err()
		}
		switch {
		case err == nil && a.left > 0:
			return a.grant(), nil
		case err == nil:
			// No verdict: somebody else won a race that this statement could not see, or
			// the lease ended before its end was read.
		case unsettled && again && ctx.Err() == nil && s.bury(ctx, key, tag) == nil:
			again = false // the connection broke, and there is another
		default:
			if unsettled {
				s.undo(ctx, key, tag)
			}
			return lockfx.Grant{}, fault(ctx, "acquire", key, err)
		}
	}
}

// ask sends an acquisition once. Now and then it takes the sweep along.
func (s *Store) ask(ctx context.Context, key string, tag int64, ttl time.Duration) (a answer, unsettled bool, err error) {
	var also []statement
	if rand.N(sweepEvery) == 0 {
		also = append(also, s.stmt.sweep)
	}
	unsettled, err = s.transact(ctx, func(rows pgx.Rows) error {
		a = answer{}
		if !rows.Next() {
			return nil
		}
		if err := rows.Scan(&a.granted, &a.token, &a.label, &a.left); err != nil {
			return fmt.Errorf("%w: %w", lockfx.ErrBadGrant, err)
		}
		if a.granted && a.token < 1 {
			return fmt.Errorf("%w: token %d", lockfx.ErrBadGrant, a.token)
		}
		return nil
	}, []any{key, tag, labelOf(ctx), microsOf(ttl), s.memory}, s.stmt.acquire, also...)
	return a, unsettled || errors.Is(err, lockfx.ErrBadGrant), err
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
	const most = 200
	label := strings.ReplaceAll(strings.ToValidUTF8(lockfx.LabelFrom(ctx), ""), "\x00", "")
	return strings.ToValidUTF8(label[:min(len(label), most)], "")
}
