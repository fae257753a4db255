package pg_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/pgstore"
)

// bare opens a pool to a database that has no schema of ours.
func bare(t *testing.T, e *engine) *pgxpool.Pool {
	t.Helper()
	pool, err := e.pool()
	if err != nil {
		t.Fatal(err)
	}
	return pool
}

// Every replica of an application migrates when it starts.
func TestManyCanMigrateAtOnce(t *testing.T) {
	e := over(t, shared(t), nil)
	pool := bare(t, e)
	for _, opts := range [][]pgstore.Option{
		{pgstore.WithTable("at once " + e.table)},
		{pgstore.WithSchema("Schema of " + e.table), pgstore.WithTable(`"quoted"; --`)},
		{pgstore.WithSchema(e.table), pgstore.WithTable(strings.Repeat("t", 53))},
	} {
		var running []<-chan outcome[bool]
		for range 4 {
			running = append(running, start(func() (bool, error) { return true, pgstore.Migrate(context.Background(), pool, opts...) }))
		}
		for _, m := range running {
			if got := <-m; got.err != nil {
				t.Error(got.err)
			}
		}
		store, err := pgstore.New(pool, opts...)
		if err != nil {
			t.Fatal(err)
		}
		e.opened = append(e.opened, func() { _ = store.Close(context.Background()) })
		everyOperation(t, store, quietly)
		token := grants(t, store, "watched", time.Hour)
		freed, stop := watches(t, store, "watched")
		defer stop()
		if ok, err := store.Release(t.Context(), "watched", token); !ok || err != nil {
			t.Fatal(ok, err)
		}
		signal(t, freed)
	}
}

// The printed SQL makes what Migrate makes.
func TestPrintedSQLMakesTheSameTable(t *testing.T) {
	e := over(t, shared(t), nil)
	d := e.direct(t)
	printed := e.table + "_printed"
	sql, err := pgstore.SchemaSQL(pgstore.WithTable(printed))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // it changes nothing where the table exists
		if _, err := d.conn.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatal(err)
		}
	}
	columns := func(table string) string {
		return value[string](d, `SELECT string_agg(concat_ws(' ', column_name, data_type, collation_name, is_nullable, column_default), ', ' ORDER BY ordinal_position)
			FROM information_schema.columns WHERE table_name = $1`, table)
	}
	if got, want := columns(printed), columns(e.table); got != want || got == "" {
		t.Errorf("columns %q, want %q", got, want)
	}
	indexes := "SELECT count(*) FROM pg_indexes WHERE tablename = $1"
	if got, want := value[int64](d, indexes, printed), value[int64](d, indexes, e.table); got != want || got != 2 {
		t.Errorf("%d indexes, want %d", got, want)
	}
}

// An application's own role need not be allowed to make tables.
func TestMigrateNeedsNoRightsWhereTheTableExists(t *testing.T) {
	e := over(t, shared(t), nil)
	d := e.direct(t)
	name := "role of " + e.table
	role := pgx.Identifier{name}.Sanitize()
	d.exec("CREATE ROLE " + role)
	d.exec("GRANT SELECT, INSERT, UPDATE, DELETE ON LEASES TO " + role)
	pool := bare(t, over(t, e.server, func(c *pgxpool.Config) {
		c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, "SET ROLE "+role)
			return err
		}
	}))
	if err := pgstore.Migrate(t.Context(), pool, e.names()...); err != nil {
		t.Error(err)
	}
	store, err := e.over(pool)
	if err != nil {
		t.Fatal(err)
	}
	everyOperation(t, store, quietly)
	d.exec("CREATE SCHEMA " + role)
	d.exec("GRANT USAGE ON SCHEMA " + role + " TO " + role)
	if err := pgstore.Migrate(t.Context(), pool, pgstore.WithSchema(name)); !errors.Is(err, lockfx.ErrStore) || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("%v; want the server's reason", err)
	}
}

func TestMigrateRefusesAForeignTable(t *testing.T) {
	e := over(t, shared(t), nil)
	d := e.direct(t)
	d.exec("ALTER TABLE LEASES DROP COLUMN label")
	if err := pgstore.Migrate(t.Context(), d.conn, e.names()...); !errors.Is(err, lockfx.ErrStore) || !strings.Contains(err.Error(), "label") {
		t.Errorf("%v; want an error that names the column", err)
	}
}

func TestAMissingTableIsSaidWithWhatToDo(t *testing.T) {
	e := over(t, shared(t), nil)
	e.direct(t).exec("DROP TABLE LEASES")
	_, err := e.store(t).Acquire(t.Context(), "nightly", time.Minute)
	if !errors.Is(err, lockfx.ErrStore) || !strings.Contains(err.Error(), "pgstore.Migrate") || !strings.HasPrefix(err.Error(), `acquire "nightly": `) {
		t.Errorf("%v; want an error that names pgstore.Migrate", err)
	}
}

// Whatever a role has as its defaults, the transactions of the store are their own.
func TestDefaultsOfTheRoleDoNotMatter(t *testing.T) {
	e := over(t, shared(t), func(c *pgxpool.Config) {
		c.ConnConfig.RuntimeParams["default_transaction_read_only"] = "on"
		c.ConnConfig.RuntimeParams["default_transaction_isolation"] = "serializable"
		c.ConnConfig.RuntimeParams["default_transaction_deferrable"] = "on"
		c.ConnConfig.RuntimeParams["timezone"] = "Asia/Kathmandu"
		c.ConnConfig.RuntimeParams["datestyle"] = "German"
		c.ConnConfig.RuntimeParams["intervalstyle"] = "sql_standard"
	})
	everyOperation(t, e.store(t), quietly)
}
