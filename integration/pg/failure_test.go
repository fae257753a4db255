package pg_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/integration/proxy"
	"github.com/lockfx/lockfx/pgstore"
)

// What was answered is on the disk: a lease outlives the death of the server, and
// the same pool goes on. Without waiting for the disk the lease may be gone; the
// token rises all the same.
func TestLeasesOutliveAKilledServer(t *testing.T) {
	t.Parallel() // it mostly waits
	s := postgres(t)
	e, hasty := over(t, s, nil), over(t, s, nil)
	durable, async := e.store(t), hasty.store(t, pgstore.WithAsyncCommit())
	var last []lockfx.Token
	for _, store := range []lockfx.Store{durable, async} {
		token := grants(t, store, "released", time.Hour)
		if ok, err := store.Release(t.Context(), "released", token); !ok || err != nil {
			t.Fatal(ok, err)
		}
		last = append(last, token)
	}
	held := grants(t, durable, "held", time.Hour)
	s.Kill()
	if g, err := durable.Acquire(t.Context(), "other", time.Hour); g.OK || !errors.Is(err, lockfx.ErrStore) {
		t.Fatalf("without a server: %+v, %v; want an error that matches lockfx.ErrStore", g, err)
	}
	if err := s.Revive(t.Context()); err != nil {
		t.Fatal(err)
	}
	refuses(t, durable, "held")
	if ok, err := durable.Renew(t.Context(), "held", held, time.Hour); !ok || err != nil {
		t.Errorf("renew: %v, %v", ok, err)
	}
	for i, store := range []lockfx.Store{durable, async} {
		if next := grants(t, store, "released", time.Hour); next <= last[i] {
			t.Errorf("token %v after %v", next, last[i])
		}
	}
}

// An administrator ends the connection while the server works on a call.
func TestATerminatedCallIsMadeAgain(t *testing.T) {
	e := over(t, shared(t), nil)
	store, d := e.store(t), e.direct(t)
	terminated := func(call func() (bool, error)) (bool, error) {
		d.exec("BEGIN")
		d.exec("SELECT FROM LEASES FOR UPDATE")
		done := start(call)
		other := e.direct(t)
		other.blocked()
		other.terminateBlocked()
		d.exec("ROLLBACK")
		got := <-done
		return got.value, got.err
	}
	ctx := context.Background()
	grants(t, store, "nightly", time.Millisecond)
	d.expired("nightly")
	var g lockfx.Grant
	if ok, err := terminated(func() (ok bool, err error) {
		g, err = store.Acquire(ctx, "nightly", time.Hour)
		return g.OK, err
	}); !ok || err != nil {
		t.Fatalf("acquire: %v, %v; want a grant", ok, err)
	}
	if ok, err := terminated(func() (bool, error) { return store.Renew(ctx, "nightly", g.Token, time.Hour) }); !ok || err != nil {
		t.Errorf("renew: %v, %v; want true", ok, err)
	}
	if ok, err := terminated(func() (bool, error) { return store.Release(ctx, "nightly", g.Token) }); !ok || err != nil {
		t.Errorf("release: %v, %v; want true", ok, err)
	}
	if ok, err := store.Release(ctx, "nightly", g.Token); ok || err != nil {
		t.Errorf("a second release: %v, %v; want false", ok, err)
	}
}

// The request is held up on its way; its caller gives up and undoes it; then it
// arrives. Reports whether the key is held in the end.
func delayed(t *testing.T, undone func(direct)) (held bool) {
	t.Helper()
	var c trips
	e := over(t, shared(t), func(config *pgxpool.Config) {
		c.tune(config)
		unprepared(config)
	})
	store, d := e.store(t), e.direct(t)
	grants(t, store, "nightly", time.Millisecond)
	d.expired("nightly")
	let := e.proxy.Hold()
	ctx, cancel := context.WithCancelCause(t.Context())
	var acquired <-chan outcome[lockfx.Grant]
	c.leaves(func() {
		acquired = start(func() (lockfx.Grant, error) { return store.Acquire(ctx, "nightly", time.Hour) })
	})
	cancel(errors.New("given up"))
	if got := <-acquired; got.value.OK || !errors.Is(got.err, context.Canceled) || !strings.Contains(got.err.Error(), "given up") {
		t.Fatalf("%+v, %v; want the end of the context and its cause", got.value, got.err)
	}
	d.until("EXISTS (SELECT FROM LEASES WHERE key = 'nightly' AND tombstones <> '{}')")
	undone(d)
	const mark = "SELECT xmin::text || ' ' || xmax::text FROM LEASES WHERE key = 'nightly'"
	before := value[string](d, mark)
	let()
	d.until("("+mark+") <> $1", before) // it has locked the row, or more
	d.until("NOT EXISTS (SELECT FROM pg_locks WHERE relation = $1::regclass AND pid <> pg_backend_pid())", d.table)
	return value[bool](d, "SELECT expires > clock_timestamp() FROM LEASES WHERE key = 'nightly'")
}

func TestCase_A02_ADelayedRequestCannotOvertakeItsUndoing(t *testing.T) {
	if delayed(t, func(direct) {}) {
		t.Error("nobody's lease holds the key")
	}
	if !delayed(t, func(d direct) { d.exec("UPDATE LEASES SET tombstones = '{}'") }) { // a planted fault: no tombstone
		t.Error("the test does not notice a request that overtook its undoing")
	}
}

// Whatever is lost, an acquisition that is not granted leaves nothing behind, also
// where another connection is hard to come by.
func TestCase_A02_LostRepliesAreUndoneWithAPoolOfOne(t *testing.T) {
	e := over(t, shared(t), func(c *pgxpool.Config) {
		poolOfOne(c)
		unprepared(c)
	})
	store, d := e.store(t), e.direct(t)
	grants(t, store, "warm", time.Minute)
	heal := e.proxy.Inflict(proxy.LoseReplies)
	ctx, cancel := context.WithCancel(t.Context())
	acquired := start(func() (lockfx.Grant, error) { return store.Acquire(ctx, "nightly", time.Hour) })
	d.until("EXISTS (SELECT FROM LEASES WHERE key = 'nightly' AND expires > clock_timestamp())")
	cancel()
	if got := <-acquired; got.value.OK || !errors.Is(got.err, context.Canceled) {
		t.Fatalf("%+v, %v; want the end of the context", got.value, got.err)
	}
	heal()
	d.until("NOT EXISTS (SELECT FROM LEASES WHERE key = 'nightly' AND expires > clock_timestamp())")
}

// The answer is lost, the connection breaks, and there is no other for a while. Nobody
// holds the lease that was granted: the call is an error.
func TestCase_A02_AGrantThatNobodyHeardOfIsUndone(t *testing.T) {
	e := over(t, shared(t), unprepared)
	store, d := e.store(t), e.direct(t)
	grants(t, store, "warm", time.Minute)
	healReplies := e.proxy.Inflict(proxy.LoseReplies)
	acquired := start(func() (lockfx.Grant, error) { return store.Acquire(context.Background(), "nightly", time.Hour) })
	d.until("EXISTS (SELECT FROM LEASES WHERE key = 'nightly' AND expires > clock_timestamp())")
	heal := e.proxy.Inflict(proxy.Drop)
	if got := <-acquired; got.value.OK || !errors.Is(got.err, lockfx.ErrStore) {
		t.Errorf("%+v, %v; want an error that matches lockfx.ErrStore", got.value, got.err)
	}
	heal()
	healReplies()
	d.until("NOT EXISTS (SELECT FROM LEASES WHERE key = 'nightly' AND expires > clock_timestamp())")
}

// While a server is promoted, or somebody else holds the table, the server refuses what
// it will do a moment later. An undoing tries for longer than that.
func TestAnUndoingOutlastsARefusalThatPasses(t *testing.T) {
	e := over(t, shared(t), func(c *pgxpool.Config) {
		unprepared(c)
		c.ConnConfig.RuntimeParams["lock_timeout"] = "50ms"
	})
	store, d := e.store(t), e.direct(t)
	grants(t, store, "warm", time.Minute)
	heal := e.proxy.Inflict(proxy.LoseReplies)
	ctx, cancel := context.WithCancel(t.Context())
	acquired := start(func() (lockfx.Grant, error) { return store.Acquire(ctx, "nightly", time.Hour) })
	d.until("EXISTS (SELECT FROM LEASES WHERE key = 'nightly' AND expires > clock_timestamp())")
	d.exec("BEGIN")
	d.exec("LOCK TABLE LEASES")
	heal()
	cancel()
	if got := <-acquired; got.err == nil {
		t.Fatalf("%+v; want the end of the context", got.value)
	}
	time.Sleep(time.Second)
	d.exec("ROLLBACK")
	d.until("NOT EXISTS (SELECT FROM LEASES WHERE key = 'nightly' AND expires > clock_timestamp())")
}

// A release whose answer is lost is made again, and finds no lease. It says true only if
// the lease was released.
func TestAReleaseInDoubtTellsWhatItKnows(t *testing.T) {
	for name, c := range map[string]struct {
		before string // what happened to the lease before it was released
		ok     bool
		err    error
	}{
		"held":      {before: "UPDATE LEASES SET label = ''", ok: true},
		"expired":   {before: "UPDATE LEASES SET expires = now()"},
		"passed on": {before: "UPDATE LEASES SET token = token + 1", err: lockfx.ErrStore},
		"broken":    {err: lockfx.ErrStore},
	} {
		t.Run(name, func(t *testing.T) {
			e := over(t, shared(t), unprepared)
			store, d := e.store(t), e.direct(t)
			token := grants(t, store, "nightly", time.Hour)
			if c.before != "" {
				d.exec(c.before)
			} else if ok, err := store.Break(t.Context(), "nightly"); !ok || err != nil {
				t.Fatal(ok, err)
			}
			heal := e.proxy.Inflict(proxy.LoseReplies)
			released := start(func() (bool, error) { return store.Release(context.Background(), "nightly", token) })
			d.until("NOT EXISTS (SELECT FROM LEASES WHERE token = $1 AND expires > clock_timestamp())", int64(token))
			for e.proxy.Lost() == 0 {
				time.Sleep(time.Millisecond)
			}
			heal()
			if got := <-released; got.value != c.ok || !errors.Is(got.err, c.err) {
				t.Errorf("%v, %v; want %v, %v", got.value, got.err, c.ok, c.err)
			}
		})
	}
}
