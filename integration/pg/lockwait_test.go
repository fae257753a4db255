package pg_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lockfx/lockfx"
)

// short is a lease that ends while a test waits.
const short = 300 * time.Millisecond

// Another transaction holds the row for longer than the lease lasts. A lease that was
// computed before the wait would be over when it is granted.
func TestCase_A08_AGrantIsComputedAfterTheWaitForTheRow(t *testing.T) {
	s := shared(t)
	for name, hold := range map[string]string{
		"a row that is locked":       "SELECT FROM LEASES WHERE key = 'nightly' FOR UPDATE",
		"a row that is being made":   "INSERT INTO LEASES (key, token, label, expires, forget_at) VALUES ('nightly', 1, '', '-infinity', now())",
		"a row that is being freed":  "UPDATE LEASES SET expires = '-infinity' WHERE key = 'nightly'",
		"a row that is being undone": `UPDATE LEASES SET tombstones = '{"1": {"request": 1, "until": "infinity"}}', expires = '-infinity' WHERE key = 'nightly'`,
	} {
		t.Run(name, func(t *testing.T) {
			e := over(t, s, nil)
			store, d := e.store(t), e.direct(t)
			if !strings.HasPrefix(hold, "INSERT") {
				grants(t, store, "nightly", short)
				d.expired("nightly")
			}
			d.exec("BEGIN")
			d.exec(hold)
			granted := start(func() (lockfx.Grant, error) { return store.Acquire(context.Background(), "nightly", short) })
			e.direct(t).blocked()
			time.Sleep(short) // what was computed before is over
			free := d.now()
			d.exec("ROLLBACK")
			got := <-granted
			if got.err != nil || !got.value.OK {
				t.Fatalf("%+v, %v; want a grant", got.value, got.err)
			}
			if !value[bool](d, "SELECT expires >= $1::timestamptz + interval '300 ms' FROM LEASES", free) {
				t.Error("the lease counts from before the row was free")
			}
		})
	}
}

// Whoever holds the row takes the lease meanwhile.
func TestCase_A08_ATakeOverDuringTheWaitIsARefusal(t *testing.T) {
	e := over(t, shared(t), func(c *pgxpool.Config) {
		c.ConnConfig.RuntimeParams["default_transaction_isolation"] = "serializable"
	})
	store, d := e.store(t), e.direct(t)
	for name, take := range map[string]string{
		"a first lease":  "INSERT INTO LEASES (key, token, label, expires, forget_at) VALUES ($1, 1, 'other', now() + '1 hour', now() + '2 hours')",
		"a second lease": "UPDATE LEASES SET token = token + 1, label = 'other', expires = now() + '1 hour' WHERE key = $1",
	} {
		t.Run(name, func(t *testing.T) {
			if strings.HasPrefix(take, "UPDATE") {
				grants(t, store, name, short)
				d.expired(name)
			}
			d.exec("BEGIN ISOLATION LEVEL READ COMMITTED")
			d.exec(take, name)
			answered := start(func() (lockfx.Grant, error) { return store.Acquire(context.Background(), name, short) })
			e.direct(t).blocked()
			d.exec("COMMIT")
			got := <-answered
			if got.err != nil || got.value.OK || got.value.HeldBy != "other" || got.value.RetryAfter < 50*time.Minute {
				t.Errorf("%+v, %v; want a refusal that names the holder and the time left", got.value, got.err)
			}
		})
	}
}

// renewer renews the lease of "nightly" for short.
type renewer func(lockfx.Token) (bool, error)

// renewedAfterExpiry lets renew wait for the row until the lease is over.
func renewedAfterExpiry(t *testing.T, e *engine, renew func(lockfx.Store) renewer) bool {
	t.Helper()
	store, d := e.store(t), e.direct(t)
	token := grants(t, store, "nightly", short)
	d.exec("BEGIN")
	d.exec("SELECT FROM LEASES WHERE key = 'nightly' FOR UPDATE")
	renewed := start(func() (bool, error) { return renew(store)(token) })
	other := e.direct(t)
	other.blocked()
	other.expired("nightly")
	d.exec("ROLLBACK")
	got := <-renewed
	if got.err != nil {
		t.Fatal(got.err)
	}
	return got.value
}

func TestCase_A08_ALeaseThatEndsDuringTheWaitIsNotRenewed(t *testing.T) {
	s := shared(t)
	if renewedAfterExpiry(t, over(t, s, nil), func(store lockfx.Store) renewer {
		return func(token lockfx.Token) (bool, error) {
			return store.Renew(context.Background(), "nightly", token, short)
		}
	}) {
		t.Error("renewed after its end")
	}

	e := over(t, s, nil) // a planted fault
	planted := e.direct(t)
	if !renewedAfterExpiry(t, e, func(lockfx.Store) renewer {
		return func(token lockfx.Token) (bool, error) {
			return planted.exec(`UPDATE LEASES SET expires = clock_timestamp() + interval '300 ms'
				WHERE key = 'nightly' AND token = $1 AND expires > clock_timestamp()`, int64(token)) == 1, nil
		}
	}) {
		t.Error("the test does not notice a clock that is read before the wait")
	}
}

// The wait for one row must not eat into the lease of another.
func TestRenewalsAreComputedAfterTheWaitForAllRows(t *testing.T) {
	e := over(t, shared(t), nil)
	store, d := e.store(t), e.direct(t)
	var renewals []lockfx.Renewal
	for _, key := range []string{"a", "b", "c"} {
		renewals = append(renewals, lockfx.Renewal{Key: key, Token: grants(t, store, key, time.Minute), TTL: short})
	}
	d.exec("BEGIN")
	d.exec("SELECT FROM LEASES WHERE key = 'c' FOR UPDATE")
	renewed := start(func() ([]lockfx.Result, error) { return store.RenewMany(context.Background(), renewals), nil })
	e.direct(t).blocked()
	time.Sleep(short) // what was computed before is over
	free := d.now()
	d.exec("ROLLBACK")
	for i, r := range (<-renewed).value {
		if !r.OK || r.Err != nil {
			t.Errorf("%s: %v, %v; want true", renewals[i].Key, r.OK, r.Err)
		}
	}
	if !value[bool](d, "SELECT min(expires) >= $1::timestamptz + interval '300 ms' FROM LEASES", free) {
		t.Error("a lease counts from before its neighbour's row was free")
	}
}

// Statements over many rows lock them in one order, so none waits for the other for
// ever.
func TestRenewalsInOppositeOrderDoNotDeadlock(t *testing.T) {
	e := over(t, shared(t), nil)
	store := e.store(t)
	var up, down []lockfx.Renewal
	for i := range 50 {
		key := string(rune('A' + i))
		r := lockfx.Renewal{Key: key, Token: grants(t, store, key, time.Hour), TTL: time.Hour}
		up, down = append(up, r), append([]lockfx.Renewal{r}, down...)
	}
	renewAll := func(all []lockfx.Renewal) func() (int, error) {
		return func() (int, error) {
			for range 30 {
				for _, r := range store.RenewMany(context.Background(), all) {
					if !r.OK || r.Err != nil {
						return 0, r.Err
					}
				}
			}
			return len(all), nil
		}
	}
	one, other := start(renewAll(up)), start(renewAll(down))
	for _, done := range []<-chan outcome[int]{one, other} {
		if got := <-done; got.err != nil || got.value == 0 {
			t.Errorf("%d, %v; want every renewal to succeed", got.value, got.err)
		}
	}
}
