package pg_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/pgstore"
)

// ways are all that can wake who waits for the key of a lease.
func ways(t *testing.T, store *pgstore.Store) map[string]func(lockfx.Token) {
	t.Helper()
	must := func(op string, ok bool, err error) {
		t.Helper()
		if !ok || err != nil {
			t.Errorf("%s: %v, %v; want true", op, ok, err)
		}
	}
	return map[string]func(lockfx.Token){
		"release": func(token lockfx.Token) {
			ok, err := store.Release(t.Context(), "nightly", token)
			must("release", ok, err)
		},
		"break": func(lockfx.Token) {
			ok, err := store.Break(t.Context(), "nightly")
			must("break", ok, err)
		},
		"shorten": func(token lockfx.Token) {
			ok, err := store.Renew(t.Context(), "nightly", token, time.Minute)
			must("renew", ok, err)
		},
	}
}

// A commit that notifies passes one at a time in the whole cluster of databases, so a key
// that nobody waits for is freed without.
func TestOnlyAKeyThatIsWatchedNotifies(t *testing.T) {
	e := over(t, shared(t), nil)
	store, other := e.store(t), e.store(t)
	d := e.direct(t)
	d.exec("LISTEN " + pgx.Identifier{"lockfx:public." + e.table}.Sanitize())
	notified := func() (n int) {
		d.exec("SELECT 1") // what was sent before arrives before
		for {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			_, err := d.conn.WaitForNotification(ctx)
			cancel()
			if err != nil {
				return n
			}
			n++
		}
	}
	for name, free := range ways(t, store) {
		free(grants(t, store, "nightly", time.Hour))
		if n := notified(); n != 0 {
			t.Errorf("%s: %d notifications of a key that nobody watches", name, n)
		}
		d.exec("DELETE FROM LEASES")
	}
	for name, free := range ways(t, store) {
		_, stop := watches(t, other, "nightly")
		free(grants(t, store, "nightly", time.Hour))
		if n := notified(); n != 1 {
			t.Errorf("%s: %d notifications of a key that is watched, want 1", name, n)
		}
		stop()
		d.exec("DELETE FROM LEASES")
	}
}

// Whoever listens and never reads fills the queue of the whole cluster, and whatever
// notifies then fails. That nobody can be woken is no reason to keep a lease, so the
// same goes through without. The queue takes gigabytes, so the server is given what says
// that it is full, at the same moment: when a transaction that has notified commits.
func TestAFullQueueOfNotificationsKeepsNothingHeld(t *testing.T) {
	e := over(t, shared(t), func(c *pgxpool.Config) {
		c.ConnConfig.RuntimeParams["search_path"] = "queue, pg_catalog, public"
	})
	store, d := e.store(t), e.direct(t)
	d.exec("CREATE SCHEMA queue")
	t.Cleanup(func() { _, _ = d.conn.Exec(context.Background(), "DROP SCHEMA queue CASCADE") })
	d.exec(`CREATE FUNCTION queue.pg_notify(text, text) RETURNS void LANGUAGE sql AS $$ SELECT set_config('lockfx.notified', 'yes', true) $$`)
	d.exec(`CREATE FUNCTION queue.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF current_setting('lockfx.notified', true) = 'yes' THEN
			RAISE 'too many notifications in the NOTIFY queue' USING ERRCODE = '54000';
		END IF;
		RETURN NULL;
	END $$`)
	d.exec("CREATE CONSTRAINT TRIGGER full_queue AFTER INSERT OR UPDATE ON LEASES DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION queue.refuse()")
	_, stop := watches(t, store, "nightly")
	defer stop()
	for _, free := range ways(t, store) {
		free(grants(t, store, "nightly", time.Hour))
		d.exec("UPDATE LEASES SET expires = '-infinity'")
	}

	// So does the undo of an acquisition that was given up while it waited for the row.
	d.exec("BEGIN")
	d.exec("SELECT FROM LEASES FOR UPDATE")
	ctx, cancel := context.WithCancel(t.Context())
	acquired := start(func() (lockfx.Grant, error) { return store.Acquire(ctx, "nightly", time.Hour) })
	e.direct(t).blocked()
	cancel()
	if got := <-acquired; !errors.Is(got.err, context.Canceled) {
		t.Errorf("%+v, %v; want the end of the context", got.value, got.err)
	}
	d.exec("ROLLBACK")
	d.until("EXISTS (SELECT FROM LEASES WHERE tombstones <> '{}')")

	_, err := d.conn.Exec(t.Context(), inTable("SET search_path = queue, pg_catalog; BEGIN; SELECT pg_notify('a', 'b'); UPDATE public.LEASES SET label = ''; COMMIT", d.table))
	if err == nil { // a planted fault: what notifies and does not try again
		t.Error("the queue is not full")
	}
}

// A release does not wait for the disk. When a crash forgets one, its lease runs out, and
// the next token is greater. A grant is on the disk, and so is all that was before it.
func TestAReleaseThatACrashForgetsIsALeaseThatRunsOut(t *testing.T) {
	t.Parallel() // it mostly waits
	s := postgres(t)
	e := over(t, s, nil)
	store := e.store(t)
	const ttl = 3 * time.Second
	released := grants(t, store, "released", ttl)
	passed := grants(t, store, "passed on", time.Hour)
	for key, token := range map[string]lockfx.Token{"released": released, "passed on": passed} {
		if ok, err := store.Release(t.Context(), key, token); !ok || err != nil {
			t.Fatal(ok, err)
		}
		if key == "passed on" {
			passed = grants(t, store, key, time.Hour)
		}
	}
	s.Kill()
	if err := s.Revive(t.Context()); err != nil {
		t.Fatal(err)
	}
	if ok, err := store.Renew(t.Context(), "passed on", passed, time.Hour); !ok || err != nil {
		t.Errorf("renew: %v, %v; want a grant to outlive the crash", ok, err)
	}
	var g lockfx.Grant
	var err error
	for begin := time.Now(); !g.OK; time.Sleep(10 * time.Millisecond) {
		if g, err = store.Acquire(t.Context(), "released", ttl); err != nil || time.Since(begin) > 2*ttl {
			t.Fatal(g, err)
		}
	}
	if g.Token <= released {
		t.Errorf("token %v after %v", g.Token, released)
	}
}
