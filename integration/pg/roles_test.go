package pg_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/pgstore"
)

// role makes a role that may use the table as granted, and returns a pool of its own. With
// a home it has a schema of its own name, which its search_path finds before public.
func role(t *testing.T, e *engine, name string, home bool, granted string) *pgxpool.Pool {
	t.Helper()
	d := e.direct(t)
	quoted := pgx.Identifier{name}.Sanitize()
	d.exec("CREATE ROLE " + quoted + " LOGIN")
	if home {
		d.exec("CREATE SCHEMA " + quoted + " AUTHORIZATION " + quoted)
	}
	if granted != "" {
		d.exec("GRANT " + granted + " ON LEASES TO " + quoted)
	}
	return bare(t, over(t, e.server, func(c *pgxpool.Config) { c.ConnConfig.User = name }))
}

const allRights = "SELECT, INSERT, UPDATE, DELETE"

// Two roles of one database use one table and one channel, whatever their search_path
// and whether or not they name the schema.
func TestRolesShareTheirLocks(t *testing.T) {
	e := over(t, shared(t), nil)
	var stores []*pgstore.Store
	for i, opts := range [][]pgstore.Option{nil, nil, {pgstore.WithSchema("public")}} {
		pool := role(t, e, fmt.Sprintf("%s %d", e.table, i), i == 0, allRights)
		if err := pgstore.Migrate(t.Context(), pool, append(e.names(), opts...)...); err != nil {
			t.Fatal(err)
		}
		store, err := e.over(pool, opts...)
		if err != nil {
			t.Fatal(err)
		}
		stores = append(stores, store)
	}
	for i, holder := range stores {
		token := grants(t, holder, "nightly", time.Hour)
		var woken []<-chan struct{}
		for _, other := range stores {
			refuses(t, other, "nightly")
			freed, stop := watches(t, other, "nightly")
			defer stop()
			woken = append(woken, freed)
		}
		if ok, err := holder.Release(t.Context(), "nightly", token); !ok || err != nil {
			t.Fatal(ok, err)
		}
		for _, freed := range woken {
			signal(t, freed)
		}
		if left := value[int64](e.direct(t), "SELECT count(*) FROM pg_class WHERE relname = $1", e.table); left != 1 {
			t.Errorf("%d tables after store %d", left, i)
		}
	}
}

// The table as version 0.1.0 made it.
const oldTable = `CREATE TABLE %s (
    key       text COLLATE "C" PRIMARY KEY CHECK (octet_length(key) BETWEEN 1 AND 512),
    token     bigint NOT NULL,
    tag       bigint NOT NULL,
    label     text NOT NULL,
    expires   timestamptz NOT NULL,
    undone    bigint[] NOT NULL DEFAULT '{}',
    forget_at timestamptz NOT NULL
) WITH (fillfactor = 50)`

// fill puts a lease and a remembered token into an old table, both ahead of the clock.
const fillOld = `INSERT INTO %s VALUES ('held', 1::bigint << 53, 7, 'an old process', now() + '1 hour', '{}', now() + '2 hours'),
	('free', 1::bigint << 54, 8, '', '-infinity', '{9}', now() + '2 hours')`

func TestMigrate_KeepsLeasesAndTokensOfAnOldTable(t *testing.T) {
	for name, migrate := range map[string]func(*engine, direct) error{
		"Migrate": func(e *engine, d direct) error { return pgstore.Migrate(t.Context(), d.conn, e.names()...) },
		"SchemaSQL": func(e *engine, d direct) error {
			sql, err := pgstore.SchemaSQL(e.names()...)
			if err == nil {
				_, err = d.conn.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := over(t, shared(t), nil)
			d := e.direct(t)
			d.exec("DROP TABLE LEASES")
			d.exec(fmt.Sprintf(oldTable, d.table))
			d.exec(fmt.Sprintf(fillOld, d.table))
			for range 2 {
				if err := migrate(e, d); err != nil {
					t.Fatal(err)
				}
			}
			store := e.store(t)
			if held := refuses(t, store, "held"); held.HeldBy != "an old process" {
				t.Errorf("%+v", held)
			}
			if ok, err := store.Renew(t.Context(), "held", 1<<53, time.Hour); !ok || err != nil {
				t.Errorf("renew: %v, %v", ok, err)
			}
			if token := grants(t, store, "free", time.Hour); token <= 1<<54 {
				t.Errorf("token %d after %d", token, 1<<54)
			}
			// A process of the old version acquires nothing any more.
			if _, err := d.conn.Exec(t.Context(), "SELECT tag, undone FROM "+d.table); err == nil {
				t.Error("the old columns are there")
			}
		})
	}
}

// Without a schema the old version made a table for each search_path. A second one beside
// it would exclude nobody.
func TestMigrate_RefusesAnOldTableElsewhere(t *testing.T) {
	e := over(t, shared(t), nil)
	d := e.direct(t)
	d.exec("DROP TABLE LEASES")
	name := "home of " + e.table
	pool := role(t, e, name, true, "")
	old := pgx.Identifier{name, e.table}.Sanitize()
	d.exec(fmt.Sprintf(oldTable, old))
	d.exec("ALTER TABLE " + old + " OWNER TO " + pgx.Identifier{name}.Sanitize())
	err := pgstore.Migrate(t.Context(), pool, e.names()...)
	if !errors.Is(err, lockfx.ErrConfig) || !strings.Contains(err.Error(), "pgstore.WithSchema") || !strings.Contains(err.Error(), name) {
		t.Fatalf("%v; want an error that names the schema and the option", err)
	}
	if err := pgstore.Migrate(t.Context(), pool, append(e.names(), pgstore.WithSchema(name))...); err != nil {
		t.Error(err)
	}
	_, cure, _ := strings.Cut(err.Error(), "move it there: ")
	d.exec("ALTER TABLE " + old + " RENAME TO moved")
	d.exec("DROP TABLE IF EXISTS LEASES")
	d.exec(fmt.Sprintf(oldTable, old))
	d.exec(cure)
	if err := pgstore.Migrate(t.Context(), d.conn, e.names()...); err != nil {
		t.Error(err)
	}
}

func TestMigrate_NamesTheRightsThatAreMissing(t *testing.T) {
	e := over(t, shared(t), nil)
	for i, lacking := range []string{"SELECT", "INSERT", "UPDATE", "DELETE"} {
		var granted []string
		for right := range strings.SplitSeq(allRights, ", ") {
			if right != lacking {
				granted = append(granted, right)
			}
		}
		pool := role(t, e, fmt.Sprintf("%s %d", e.table, i), false, strings.Join(granted, ", "))
		err := pgstore.Migrate(t.Context(), pool, e.names()...)
		if !errors.Is(err, lockfx.ErrStore) || !strings.Contains(err.Error(), "GRANT "+lacking+" ON ") {
			t.Errorf("without %s: %v; want an error that says what to grant", lacking, err)
			continue
		}
		_, cure, _ := strings.Cut(err.Error(), ": GRANT ")
		e.direct(t).exec("GRANT " + cure)
		if err := pgstore.Migrate(t.Context(), pool, e.names()...); err != nil {
			t.Error(err)
		}
	}
}

// A sweep that fails is not the acquisition's fault.
func TestARoleThatMayNotDeleteAcquires(t *testing.T) {
	e := over(t, shared(t), nil)
	store, err := e.over(role(t, e, e.table, false, "SELECT, INSERT, UPDATE"))
	if err != nil {
		t.Fatal(err)
	}
	for range 200 { // one in 16 takes a sweep along
		if ok, err := store.Release(context.Background(), "nightly", grants(t, store, "nightly", time.Hour)); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
}
