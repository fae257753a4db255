package filestore_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/filestore"
	"github.com/lockfx/lockfx/internal/storemodel"
)

// damages are ways in which a file that a store wrote can go bad: cut off after each
// byte, with each byte changed, and some more.
func damages(good []byte) [][]byte {
	var bad [][]byte
	for i := range good {
		bad = append(bad, good[:i])
		changed := bytes.Clone(good)
		changed[i] ^= 0x01
		bad = append(bad, changed)
	}
	text := string(good)
	return append(bad,
		append(bytes.Clone(good), '\n'),
		append(bytes.Clone(good), good...),
		make([]byte, len(good)),
		bytes.Repeat([]byte(" "), 1<<20),
		[]byte("null"), []byte("{}"), []byte("1"),
		[]byte(strings.Replace(text, "{", `{"format": "lockfx lease 1",`, 1)), // twice
		[]byte(strings.ReplaceAll(text, " 1\"", " 2\"")),                      // of a later version
		[]byte(strings.ReplaceAll(text, `"token"`, `"Token"`)),
		[]byte(strings.ReplaceAll(text, "  ", "\t")),
	)
}

func TestCorruptRecordIsAnErrorThatSaysSo(t *testing.T) {
	s, _, dir := newStore(t)
	name := filestore.LeaseName("nightly")
	token := grant(t, s, "nightly", time.Hour)
	good := readFile(t, dir, name)
	operations := calls(s, token)
	delete(operations, "break") // it is the way out
	delete(operations, "watch") // slow to open; it is tested elsewhere
	ops := slices.Sorted(maps.Keys(operations))
	for i, bad := range damages(good) {
		writeFile(t, dir, name, bad)
		op := ops[i%len(ops)]
		err := operations[op](t.Context(), "nightly")
		if !errors.Is(err, filestore.ErrCorrupt) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s, with %.500q: %v", op, bad, err)
		}
		if after := readFile(t, dir, name); !bytes.Equal(after, bad) {
			t.Fatalf("%s changed the evidence", op)
		}
	}
	writeFile(t, dir, name, good)
	renew(t, s, "nightly", token, time.Hour, true)
}

func TestCorruptMarkIsAnErrorThatSaysSo(t *testing.T) {
	s, _, dir := newStore(t)
	held := grant(t, s, "nightly", time.Hour)
	good := readFile(t, dir, filestore.MarkName)
	for _, bad := range damages(good) {
		writeFile(t, dir, filestore.MarkName, bad)
		g, err := s.Acquire(t.Context(), "weekly", time.Hour)
		if g.OK || !errors.Is(err, filestore.ErrCorrupt) || !strings.Contains(err.Error(), filestore.MarkName) {
			t.Errorf("with %.500q: %+v, %v", bad, g, err)
		}
	}
	renew(t, s, "nightly", held, time.Hour, true) // needs no new token
	removeFile(t, dir, filestore.MarkName)        // the way out
	rising(t, held, grant(t, s, "weekly", time.Hour))
}

func TestRecordOfAnotherKeyIsCorrupt(t *testing.T) {
	s, _, dir := newStore(t)
	grant(t, s, "weekly", time.Hour)
	writeFile(t, dir, filestore.LeaseName("nightly"), readFile(t, dir, filestore.LeaseName("weekly")))
	g, err := s.Acquire(t.Context(), "nightly", time.Hour)
	if g.OK || !errors.Is(err, filestore.ErrCorrupt) || !strings.Contains(err.Error(), `about key "weekly"`) {
		t.Errorf("%+v, %v", g, err)
	}
}

func TestMarkIsNoRecord(t *testing.T) {
	s, _, dir := newStore(t)
	grant(t, s, "weekly", time.Hour)
	writeFile(t, dir, filestore.LeaseName("nightly"), readFile(t, dir, filestore.MarkName))
	if g, err := s.Acquire(t.Context(), "nightly", time.Hour); g.OK || !errors.Is(err, filestore.ErrCorrupt) {
		t.Errorf("%+v, %v", g, err)
	}
}

// Neither way out issues a token again, though the clock stands still and the process is
// another one.
func TestWaysOutOfACorruptRecord(t *testing.T) {
	for name, recoverBy := range map[string]func(*filestore.Store, string) error{
		"break": func(s *filestore.Store, _ string) error {
			ok, err := s.Break(context.Background(), "nightly")
			if !ok {
				err = errors.Join(err, errors.New("break found nothing"))
			}
			return err
		},
		"remove": func(_ *filestore.Store, path string) error { return os.Remove(path) },
	} {
		s, c, dir := newStore(t)
		token := grant(t, s, "nightly", time.Hour)
		writeFile(t, dir, filestore.LeaseName("nightly"), nil)
		s = open(t, dir, filestore.WithNow(c.Now))
		if err := recoverBy(s, filepath.Join(dir, filestore.LeaseName("nightly"))); err != nil {
			t.Fatal(name, err)
		}
		inspect(t, s, "nightly", lockfx.Lease{})
		renew(t, s, "nightly", token, time.Hour, false)
		rising(t, token, grant(t, s, "nightly", time.Hour))
	}
}

// Without the mark a corrupt record may have had the greatest token of all: no token can
// be issued for any key, and Break does not guess one either.
func TestCorruptRecordWithoutAMark(t *testing.T) {
	s, c, dir := newStore(t)
	grant(t, s, "nightly", time.Hour)
	writeFile(t, dir, filestore.LeaseName("nightly"), nil)
	removeFile(t, dir, filestore.MarkName)
	s = open(t, dir, filestore.WithNow(c.Now))
	for op, call := range map[string]func() error{
		"acquire": func() error { _, err := s.Acquire(t.Context(), "weekly", time.Hour); return err },
		"break":   func() error { _, err := s.Break(t.Context(), "nightly"); return err },
	} {
		if err := call(); !errors.Is(err, filestore.ErrCorrupt) || !strings.Contains(err.Error(), filestore.LeaseName("nightly")) {
			t.Errorf("%s: %v", op, err)
		}
	}
}

// Whatever is on disk: it is read as exactly what a store wrote there, or not at all.
func FuzzRecord(f *testing.F) {
	for _, r := range []filestore.Lease{
		{Key: "nightly", Held: true, Token: 1767323045000000, Label: "host/1/app", Ends: storemodel.Epoch},
		{Key: "<é>\u2028\x01", Token: 1, Previous: -1, Ends: storemodel.Epoch.Add(1)},
	} {
		data, err := filestore.SealLease(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
		f.Add(data[:len(data)/2])
		f.Add(bytes.ReplaceAll(data, []byte("\n"), nil))
	}
	if data, err := filestore.SealMark(filestore.Mark{Token: 1767323045000000, SweepAt: storemodel.Epoch}); err != nil {
		f.Fatal(err)
	} else {
		f.Add(data)
	}
	dir := newDir(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		r, readErr := filestore.ReadLease(data)
		if readErr == nil {
			if again, err := filestore.SealLease(r); err != nil || !bytes.Equal(again, data) {
				t.Fatalf("%q was read as %+v, which is %q, %v", data, r, again, err)
			}
		} else if !errors.Is(readErr, filestore.ErrCorrupt) || r != (filestore.Lease{}) {
			t.Fatalf("%+v, %v", r, readErr)
		}
		if m, err := filestore.ReadMark(data); err == nil {
			if again, err := filestore.SealMark(m); err != nil || !bytes.Equal(again, data) {
				t.Fatalf("%q was read as %+v, which is %q, %v", data, m, again, err)
			}
		}
		writeFile(t, dir, filestore.LeaseName("nightly"), data)
		s := open(t, dir, filestore.WithNow(func() time.Time { return storemodel.Epoch }))
		g, err := s.Acquire(t.Context(), "nightly", time.Minute)
		if believed := readErr == nil && r.Key == "nightly"; believed != (err == nil) {
			t.Fatalf("Acquire = %+v, %v; reading the record: %v", g, err, readErr)
		}
		if g.OK && (r.Held && r.Ends.After(storemodel.Epoch) || g.Token <= r.Token) {
			t.Fatalf("%+v after %+v", g, r)
		}
	})
}
