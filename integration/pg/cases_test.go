package pg_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/pgstore"
)

// The rest of these cases is in the kit, which runs over every kind of server.

func TestCase_T01_TokensOutliveReleaseAndBreak(t *testing.T) {
	e := over(t, shared(t), nil)
	store := e.store(t)
	// A token that is ahead of the clock must be followed by a greater one all the same.
	e.direct(t).exec("INSERT INTO LEASES (key, token, label, expires, forget_at) VALUES ('nightly', $1, '', '-infinity', now() + '1 day')", int64(1)<<53)
	last := lockfx.Token(1) << 53
	for i := range 20 {
		token := grants(t, store, "nightly", time.Hour)
		if token <= last || token > last+2 {
			t.Fatalf("token %d after %d", token, last)
		}
		last = token
		if i%2 == 0 {
			_, _ = store.Break(t.Context(), "nightly")
		} else if ok, err := store.Release(t.Context(), "nightly", token); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
}

func TestCase_T02_TokensRiseAcrossALossOfTheData(t *testing.T) {
	e := over(t, shared(t), nil)
	store, d := e.store(t), e.direct(t)
	token := grants(t, store, "nightly", time.Hour)
	d.exec("DELETE FROM LEASES")
	next := grants(t, store, "nightly", time.Hour)
	if now := value[int64](d, "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"); next <= token || int64(next) > now {
		t.Errorf("token %d after %d, at %d", next, token, now)
	}
}

// Unused rows go, a few with each sweep; leases and remembered tokens stay.
func TestCase_T03_RowsOfUnusedKeysAreSwept(t *testing.T) {
	e := over(t, shared(t), nil)
	store, d := e.store(t), e.direct(t)
	held := grants(t, store, "held", time.Hour)
	d.exec(`INSERT INTO LEASES (key, token, label, expires, forget_at) SELECT 'unused ' || i, 1, '', '-infinity', now() - interval '1 second' FROM generate_series(1, 500) AS i`)
	d.exec(`INSERT INTO LEASES (key, token, label, expires, forget_at) SELECT 'remembered ' || i, 1, '', '-infinity', now() + interval '1 hour' FROM generate_series(1, 50) AS i`)
	d.exec(`UPDATE LEASES SET forget_at = now() - interval '1 second' WHERE key = 'held'`)
	acquisitions := 0
	for value[int64](d, "SELECT count(*) FROM LEASES WHERE key LIKE 'unused %'") > 0 {
		if acquisitions++; acquisitions > 2000 {
			t.Fatal("2000 acquisitions have not swept 500 rows")
		}
		refuses(t, store, "held")
	}
	t.Logf("500 rows were gone after %d acquisitions", acquisitions)
	if left := value[int64](d, "SELECT count(*) FROM LEASES"); left != 51 {
		t.Errorf("%d rows are left, want the lease and 50 remembered tokens", left)
	}
	if ok, err := store.Renew(t.Context(), "held", held, time.Hour); !ok || err != nil {
		t.Errorf("renew: %v, %v", ok, err)
	}
}

// A row is remembered for as long as the option says, counted from the end of the
// lease, and not much longer.
func TestCase_T03_MemoryCountsFromTheEndOfTheLease(t *testing.T) {
	e := over(t, shared(t), nil)
	store, d := e.store(t, pgstore.WithMemory(3*time.Hour)), e.direct(t)
	token := grants(t, store, "nightly", 2*time.Hour)
	remembered := func(after string) {
		t.Helper()
		kept := value[bool](d, `SELECT forget_at BETWEEN expires + interval '3 hours' AND expires + interval '4 hours' FROM LEASES WHERE key = 'nightly'`)
		if !kept {
			t.Error("not so after", after)
		}
	}
	remembered("an acquisition")
	if ok, err := store.Renew(t.Context(), "nightly", token, 48*time.Hour); !ok || err != nil {
		t.Fatal(ok, err)
	}
	remembered("a renewal")
}

// Sweeps go past rows that others work on.
func TestSweepsWaitForNobody(t *testing.T) {
	e := over(t, shared(t), nil)
	store, d := e.store(t), e.direct(t)
	d.exec(`INSERT INTO LEASES (key, token, label, expires, forget_at) SELECT 'unused ' || i, 1, '', '-infinity', now() - interval '1 second' FROM generate_series(1, 10) AS i`)
	other := e.direct(t)
	other.exec("BEGIN")
	other.exec("SELECT FROM LEASES WHERE key = 'unused 1' FOR UPDATE")
	for n := 0; value[int64](d, "SELECT count(*) FROM LEASES WHERE key LIKE 'unused %'") > 1; n++ {
		if n > 2000 {
			t.Fatal("2000 acquisitions have not swept 9 rows")
		}
		_, err := store.Acquire(t.Context(), "nightly", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
	}
	other.exec("ROLLBACK")
}

func TestCase_T07_AKeyThatIsTooLongIsRefusedWithTheRule(t *testing.T) {
	store := over(t, shared(t), nil).store(t)
	long := strings.Repeat("k", lockfx.MaxKeyLen)
	grants(t, store, long, time.Minute)
	if _, err := store.Acquire(t.Context(), long+"k", time.Minute); !errors.Is(err, lockfx.ErrConfig) || !strings.Contains(err.Error(), strconv.Itoa(lockfx.MaxKeyLen)) {
		t.Errorf("%v; want an error that names the limit", err)
	}
}

// A label is for people: none is a reason to grant nothing.
func TestOddLabelsAreShownAsFarAsTheyCanBe(t *testing.T) {
	for label, want := range map[string]string{
		"a\x00b\xff":              "ab",
		strings.Repeat("é", 1500): strings.Repeat("é", 1500),
		"'; DROP TABLE x; -- $1":  "'; DROP TABLE x; -- $1",
		"":                        "",
	} {
		store := over(t, shared(t), nil).store(t)
		g, err := store.Acquire(lockfx.WithLabel(t.Context(), label), "nightly", time.Minute)
		if err != nil || !g.OK {
			t.Fatal(g, err)
		}
		if got := refuses(t, store, "nightly").HeldBy; got != want {
			t.Errorf("held by %q, want %q", got, want)
		}
	}
}

// What renews and releases changes no index, so it costs no index entries and its old
// versions go without a vacuum.
func TestUpdatesStayInTheirPage(t *testing.T) {
	t.Parallel() // the server takes its time to count
	e := over(t, shared(t), nil)
	pool := bare(t, e)
	store, err := e.over(pool)
	if err != nil {
		t.Fatal(err)
	}
	const rounds = 100
	for range rounds {
		token := grants(t, store, "nightly", time.Minute)
		if ok, err := store.Renew(t.Context(), "nightly", token, time.Minute); !ok || err != nil {
			t.Fatal(ok, err)
		}
		if ok, err := store.Release(t.Context(), "nightly", token); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	pool.Close() // sessions that end tell what they counted
	const counted = "FROM pg_stat_user_tables WHERE relname = $1"
	d := e.direct(t)
	d.until("n_tup_upd >= $2 - 1 "+counted, e.table, 3*rounds)
	// One may come when the hour of forget_at turns.
	if other := value[int64](d, "SELECT n_tup_upd - n_tup_hot_upd "+counted, e.table); other > 2 {
		t.Errorf("%d of %d updates changed an index", other, 3*rounds)
	}
}
