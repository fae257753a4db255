package pgstore

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lockfx/lockfx"
)

// Attempts get longer, so that a slow server is waited for, and leave time for another.
func TestPatience_LeavesTimeForAnotherAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for limit, want := range map[time.Duration][]time.Duration{
			20 * time.Second:      {5 * time.Second, 7500 * time.Millisecond, 3750 * time.Millisecond},
			2 * time.Second:       {500 * time.Millisecond, 750 * time.Millisecond, 375 * time.Millisecond},
			10 * time.Minute:      {5 * time.Second, 10 * time.Second, 20 * time.Second, 40 * time.Second},
			15 * time.Millisecond: {15 * time.Millisecond},
			0:                     {5 * time.Second, 10 * time.Second, 20 * time.Second}, // none
		} {
			ctx, cancel := context.WithCancel(t.Context())
			if limit > 0 {
				ctx, cancel = context.WithTimeout(ctx, limit)
			}
			for n, want := range want {
				got := patience(ctx, n)
				if got != want {
					t.Errorf("attempt %d within %v: %v, want %v", n, limit, got, want)
				}
				time.Sleep(got)
			}
			cancel()
		}
	})
}

func TestJudge_TellsWhatIsWorthAnotherConnection(t *testing.T) {
	server := func(code string) error { return &pgconn.PgError{Code: code} }
	broken := errors.New("unexpected EOF")
	for _, c := range []struct {
		err              error
		closed           bool
		doubt, elsewhere bool
	}{
		{err: nil},
		{err: broken, closed: true, doubt: true, elsewhere: true},
		{err: errors.New("the transaction was not committed")},
		{err: unsentError{broken}, closed: true, elsewhere: true},
		{err: unsentError{server("42P01")}},
		{err: unsentError{server(duplicateStatement)}, elsewhere: true},
		{err: server("42P01")},                                             // undefined_table
		{err: server("55P03")},                                             // lock_not_available
		{err: server("25006"), elsewhere: true},                            // a standby
		{err: server("0A000"), elsewhere: true},                            // a standby
		{err: server("57P01"), closed: true, elsewhere: true},              // terminated
		{err: server("57P02"), closed: true, doubt: true, elsewhere: true}, // another process crashed
		{err: server("08P01"), closed: true, doubt: true, elsewhere: true}, // a pooler lost its server
		{err: fmt.Errorf("%w: token 0", lockfx.ErrBadGrant)},
	} {
		f := judge(c.err, c.closed)
		if f.doubt != c.doubt || f.elsewhere != c.elsewhere || !errors.Is(f.err, c.err) {
			t.Errorf("%v: %+v, want doubt %v, elsewhere %v", c.err, f, c.doubt, c.elsewhere)
		}
	}
}

// The end of the call comes first, and what stood in its way is said beside it.
func TestFault_SaysWhatTheLastAttemptCameTo(t *testing.T) {
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("given up"))
	silent := errors.New("no answer within 5s")
	for _, c := range []struct {
		ctx      context.Context
		err      error
		want     string
		is, isnt error
	}{
		{
			ended, silent, `renew "k": context canceled: given up (the last attempt: no answer within 5s)`,
			context.Canceled, lockfx.ErrStore,
		},
		{ended, context.Canceled, `renew "k": context canceled: given up`, context.Canceled, lockfx.ErrStore},
		{t.Context(), silent, `renew "k": store failed: no answer within 5s`, lockfx.ErrStore, context.Canceled},
		{t.Context(), fmt.Errorf("%w: token 0", lockfx.ErrBadGrant), `renew "k": malformed grant: token 0`, lockfx.ErrBadGrant, lockfx.ErrStore},
		{
			t.Context(), &pgconn.PgError{Code: "42P01", Severity: "ERROR", Message: "no table"},
			`renew "k": store failed: ERROR: no table (SQLSTATE 42P01); pgstore.Migrate makes the table, or run what pgstore.SchemaSQL returns`,
			lockfx.ErrStore, lockfx.ErrConfig,
		},
	} {
		if err := fault(c.ctx, "renew", "k", c.err); err.Error() != c.want || !errors.Is(err, c.is) || errors.Is(err, c.isnt) {
			t.Errorf("%v\nwant %s, which matches %q and not %q", err, c.want, c.is, c.isnt)
		}
	}
}
