package pg_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/pgstore"
)

// blocks returns the blocks of the README that have a language, by what stands before
// them.
func blocks(t *testing.T, language string) map[string]string {
	t.Helper()
	readme, err := os.ReadFile("../../pgstore/README.md")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, m := range regexp.MustCompile("(?s)([^\n]*)\n\n *```"+language+"\n(.*?)```").FindAllSubmatch(readme, -1) {
		found[string(m[1])] = string(m[2])
	}
	return found
}

// query executes the statements of a block, and returns their rows.
func (d direct) query(sql string) (rows []string) {
	d.t.Helper()
	for statement := range strings.SplitSeq(strings.TrimSpace(sql), ";\n") {
		result, err := d.conn.Query(d.t.Context(), statement, pgx.QueryExecModeSimpleProtocol)
		if err != nil {
			d.t.Fatal(err)
		}
		for result.Next() {
			values, err := result.Values()
			if err != nil {
				d.t.Fatal(err)
			}
			rows = append(rows, fmt.Sprint(values...))
		}
		if result.Err() != nil {
			d.t.Fatalf("%v\n%s", result.Err(), statement)
		}
	}
	return rows
}

// Each query of the README, beside the state that it claims to show.
func TestReadme_QueriesShowWhatTheyClaim(t *testing.T) {
	t.Parallel() // it mostly waits
	e := over(t, postgres(t), nil)
	e.table = "lockfx_leases"
	d := e.direct(t)
	if err := pgstore.Migrate(t.Context(), d.conn); err != nil {
		t.Fatal(err)
	}
	store := e.store(t)
	sql := blocks(t, "sql")
	ask := func(text string) []string {
		t.Helper()
		block, found := sql[text]
		if !found {
			t.Fatalf("the README has no block after %q", text)
		}
		return d.query(block)
	}

	g, err := store.Acquire(lockfx.WithLabel(t.Context(), "web-1"), "nightly", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	grants(t, store, "expired", time.Millisecond)
	d.expired("expired")
	if ok, err := store.Release(t.Context(), "released", grants(t, store, "released", time.Hour)); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if rows := ask("Who holds what, and for how long:"); len(rows) != 1 || !strings.HasPrefix(rows[0], fmt.Sprint("nightly", "web-1", int64(g.Token))) {
		t.Errorf("%q hold something; want web-1 alone", rows)
	}

	waiting := func(want int, when string) {
		t.Helper()
		if rows := ask("Which processes wait for locks, one connection each:"); len(rows) != want {
			t.Errorf("%d processes wait %s; want %d", len(rows), when, want)
		}
	}
	waiting(0, "at first")
	freed, stop := watches(t, store, "nightly")
	waiting(1, "at once")
	_, stopOther := watches(t, store, "another key")
	waiting(1, "when they wait for another key too")
	stopOther()
	time.Sleep(6 * time.Second) // the connection was tested meanwhile
	waiting(1, "later")
	other := e.store(t)
	_, stopOther = watches(t, other, "nightly")
	waiting(2, "with another")
	stopOther()
	if rows := ask("Which keys somebody waits for, or did within the last five minutes:"); len(rows) != 2 || !strings.Contains(fmt.Sprint(rows), "nightlyweb-1") {
		t.Errorf("somebody waits for %q; want nightly, which web-1 holds, and another key", rows)
	}

	ask("See keys as they are freed while somebody waits for them, in `psql`:")
	ask("Free a key by force and wake those who wait for it, as `Break` does. The row must stay, and its token must rise:")
	signal(t, freed)
	if n, err := d.conn.WaitForNotification(t.Context()); err != nil || n.Payload != "nightly" {
		t.Errorf("%+v, %v; want the key that was freed", n, err)
	}
	if ok, err := store.Renew(t.Context(), "nightly", g.Token, time.Hour); ok || err != nil {
		t.Errorf("the broken holder renews: %v, %v", ok, err)
	}
	if next := grants(t, store, "nightly", time.Hour); next <= g.Token+1 {
		t.Errorf("token %v after %v", next, g.Token)
	}
	stop()
	d.until("count(*) = 0 FROM pg_stat_activity WHERE query LIKE '-- lockfx waits on %'")
	waiting(0, "in the end")

	d.exec("UPDATE LEASES SET forget_at = now() - interval '1 minute' WHERE key = 'released'")
	if rows := ask("Whether rows are swept, and updates stay in their page:"); len(rows) != 2 || rows[0] != "4 1 1" {
		t.Errorf("%q; want four rows, one held, one to be swept, and a line of counts", rows)
	}
	for text := range sql {
		if !strings.HasSuffix(text, ":") {
			t.Errorf("a block after %q, which is not tested", text)
		}
	}
	if len(sql) != 6 {
		t.Errorf("%d blocks, and 6 of them are tested", len(sql))
	}
}

// Each piece of Go of the README is part of an example, so it compiles.
func TestReadme_GoIsThatOfTheExamples(t *testing.T) {
	source, err := os.ReadFile("../../pgstore/example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	flat := func(code string) string {
		return strings.Join(strings.Fields(regexp.MustCompile(`//.*`).ReplaceAllString(code, "")), " ")
	}
	pieces := blocks(t, "go")
	for _, piece := range pieces {
		if !strings.Contains(flat(string(source)), flat(piece)) {
			t.Errorf("in no example:\n%s", piece)
		}
	}
	if len(pieces) != 2 {
		t.Errorf("%d pieces of Go, want 2", len(pieces))
	}
}

// The connection string of the README sets what it says.
func TestReadme_ConnectionStringSetsWhatItSays(t *testing.T) {
	_, query, _ := strings.Cut(blocks(t, "")["* **Set `connect_timeout` and `tcp_keepalives_idle`** in the connection string:"], "?")
	config, err := pgxpool.ParseConfig("postgres://postgres@" + shared(t).Addr() + "/postgres?sslmode=disable&" + strings.TrimSpace(query))
	if err != nil {
		t.Fatal(err)
	}
	if got := config.ConnConfig.ConnectTimeout; got != 5*time.Second {
		t.Errorf("connect_timeout is %v", got)
	}
	conn, err := pgx.ConnectConfig(t.Context(), config.ConnConfig)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context()) //nolint:errcheck // a test
	for setting, want := range map[string]string{"idle": "60", "interval": "10", "count": "3"} {
		var got string
		if err := conn.QueryRow(t.Context(), "SHOW tcp_keepalives_"+setting).Scan(&got); err != nil || got != want {
			t.Errorf("tcp_keepalives_%s is %s, %v; want %s", setting, got, err, want)
		}
	}
}
