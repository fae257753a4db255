package pg_test

import (
	"strings"
	"testing"
	"time"
)

// undoes sends the undo of the store, as a client would.
func (d direct) undoes(client, number int64, stays time.Duration) {
	d.t.Helper()
	undo := strings.ReplaceAll(statement(d.t, "undo.sql"), "{leases}", d.table)
	if _, err := d.conn.Exec(d.t.Context(), undo, "nightly", client, number, stays.Microseconds(), "c"); err != nil {
		d.t.Fatal(err)
	}
}

// However many acquisitions are given up meanwhile, a request that was undone is granted
// to nobody when it arrives; another client's, and a later one, are.
func TestATombstoneStaysHoweverManyFollow(t *testing.T) {
	e := over(t, shared(t), nil)
	d := e.direct(t)
	acquire := strings.ReplaceAll(statement(t, "acquire.sql"), "{leases}", d.table)
	arrives := func(client, number int64) int64 {
		t.Helper()
		tag, err := d.conn.Exec(t.Context(), acquire, "nightly", client, number, "", time.Hour.Microseconds(), time.Hour.Microseconds())
		if err != nil {
			t.Fatal(err)
		}
		return tag.RowsAffected()
	}
	const given = 200
	for n := range int64(given) {
		d.undoes(1, n, time.Hour)
		d.undoes(2, n, time.Hour)
	}
	d.undoes(3, 7, time.Hour)
	for client, numbers := range map[int64][]int64{1: {0, given / 2, given - 1}, 2: {0, given - 1}, 3: {7, 1}} {
		for _, number := range numbers {
			if arrives(client, number) != 0 {
				t.Errorf("request %d of client %d was granted", number, client)
			}
		}
	}
	if arrives(1, given) != 1 {
		t.Error("a later request was refused")
	}
	d.exec("UPDATE LEASES SET expires = '-infinity'")
	if arrives(4, 1) != 1 {
		t.Error("another client was refused")
	}
}

// A row keeps one tombstone for each client, until its time is over.
func TestTombstonesAreBounded(t *testing.T) {
	e := over(t, shared(t), nil)
	d := e.direct(t)
	const clients = 50
	for n := range int64(3) {
		for client := range int64(clients) {
			d.undoes(client, n, time.Hour)
		}
	}
	count := "SELECT count(*) FROM LEASES, jsonb_object_keys(tombstones)"
	if n := value[int64](d, count); n != clients {
		t.Errorf("%d tombstones, want %d", n, clients)
	}
	if each := value[int64](d, "SELECT length(tombstones::text) / $1 FROM LEASES", clients); each > 120 {
		t.Errorf("%d bytes each", each)
	}
	for client := range int64(clients) {
		d.undoes(client, 3, time.Microsecond)
	}
	d.undoes(clients, 1, time.Hour)
	if n := value[int64](d, count); n != 1 {
		t.Errorf("%d tombstones after their time, want the last", n)
	}
}
