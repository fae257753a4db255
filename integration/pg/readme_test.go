package pg_test

import (
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lockfx/lockfx/pgstore"
)

// The SQL of the README runs, and does what it says.
func TestTheSQLOfTheReadmeWorks(t *testing.T) {
	text, err := os.ReadFile("../../pgstore/README.md")
	if err != nil {
		t.Fatal(err)
	}
	e := over(t, shared(t), nil)
	e.table = "lockfx_leases"
	d := e.direct(t)
	if err := pgstore.Migrate(t.Context(), d.conn); err != nil {
		t.Fatal(err)
	}
	d.exec("DELETE FROM LEASES")
	store := e.store(t)
	token := grants(t, store, "nightly", time.Hour)
	freed, stop := watches(t, store, "nightly")
	defer stop()
	blocks := regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllSubmatch(text, -1)
	for _, sql := range blocks {
		if _, err := d.conn.Exec(t.Context(), string(sql[1]), pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Errorf("%v\n%s", err, sql[1])
		}
	}
	if len(blocks) < 5 {
		t.Errorf("%d blocks", len(blocks))
	}
	signal(t, freed)
	if next := grants(t, store, "nightly", time.Hour); next <= token {
		t.Errorf("token %v after %v", next, token)
	}
}

// A connection of its own is what the README counts.
func TestTheReadmeFindsTheWaiters(t *testing.T) {
	e := over(t, shared(t), nil)
	_, stop := watches(t, e.store(t), "nightly")
	defer stop()
	e.direct(t).until(`count(*) >= 1 FROM pg_stat_activity WHERE query LIKE 'LISTEN "lockfx:%'`)
}
