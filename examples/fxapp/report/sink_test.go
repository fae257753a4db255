package report_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/examples/fxapp/report"
)

func open(t *testing.T, path string) *report.Sink {
	t.Helper()
	s, err := report.OpenSink(path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func write(t *testing.T, s *report.Sink, token lockfx.Token, body string) {
	t.Helper()
	if err := s.Write(t.Context(), token, []byte(body)); err != nil {
		t.Fatal(err)
	}
}

// files returns all that lies in the directory of path: name to state and content.
func files(t *testing.T, path string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, entry := range entries {
		name := filepath.Join(filepath.Dir(path), entry.Name())
		info, err := os.Lstat(name)
		if err != nil {
			t.Fatal(err)
		}
		content := ""
		if info.Mode().IsRegular() {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			content = string(text)
		}
		found[entry.Name()] = fmt.Sprint(info.Mode(), info.ModTime().UnixNano(), ": ", content)
	}
	return found
}

func wantFile(t *testing.T, path, want string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s: got %q, %v; want %q", filepath.Base(path), got, err, want)
	}
}

func TestSinkWritesReportAndMark(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.txt")
	s := open(t, path)
	if s.Mark() != 0 || len(files(t, path)) != 0 {
		t.Errorf("a new sink has mark %d and files %v", s.Mark(), files(t, path))
	}
	const big = 1<<53 + 1 // a token that a float could not carry
	for _, token := range []lockfx.Token{7, 7, 8, big} {
		body := "by " + token.String()
		write(t, s, token, body)
		wantFile(t, path, body)
		wantFile(t, path+".fence", token.String()+"\n")
		if s.Mark() != token {
			t.Errorf("mark %d after a write with %d", s.Mark(), token)
		}
	}
	if found := files(t, path); len(found) != 3 { // with the lock
		t.Errorf("left behind: %v", found)
	}
}

func TestSinkRefusesStaleTokens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.txt")
	s := open(t, path)
	write(t, s, 34, "new")
	before := files(t, path)
	for _, token := range []lockfx.Token{33, 1, 0, -1} {
		err := s.Write(t.Context(), token, []byte("old"))
		if !errors.Is(err, lockfx.ErrStaleToken) {
			t.Errorf("token %d: got error %v, want ErrStaleToken", token, err)
			continue
		}
		for _, part := range []string{fmt.Sprintf("%q", path), fmt.Sprintf("token %d ", token), "34"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("token %d: error %q does not name %s", token, err, part)
			}
		}
	}
	if after := files(t, path); !maps.Equal(before, after) {
		t.Errorf("a refused write touched the files\nbefore %v\nafter  %v", before, after)
	}
	if s.Mark() != 34 {
		t.Errorf("mark %d after refused writes", s.Mark())
	}
}

func TestSinkRefusesAZeroTokenOnAFreshFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.txt")
	err := open(t, path).Write(t.Context(), 0, []byte("unfenced"))
	if !errors.Is(err, lockfx.ErrStaleToken) || len(files(t, path)) != 0 {
		t.Errorf("got error %v, files %v", err, files(t, path))
	}
}

func TestSinkRemembersAcrossARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.txt")
	write(t, open(t, path), 34, "new")

	reopened := open(t, path)
	if reopened.Mark() != 34 {
		t.Errorf("mark %d after a restart", reopened.Mark())
	}
	if err := reopened.Write(t.Context(), 33, []byte("old")); !errors.Is(err, lockfx.ErrStaleToken) {
		t.Errorf("got error %v, want ErrStaleToken", err)
	}
	wantFile(t, path, "new")
	write(t, reopened, 34, "again")
	wantFile(t, path, "again")
}

// Each replica of a service opens a sink of its own.
func TestSinksOfOneFileSeeEachOther(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.txt")
	a, b := open(t, path), open(t, path)
	write(t, a, 34, "new")
	if err := b.Write(t.Context(), 33, []byte("old")); !errors.Is(err, lockfx.ErrStaleToken) {
		t.Errorf("got error %v, want ErrStaleToken", err)
	}
	wantFile(t, path, "new")
	if b.Mark() != 34 {
		t.Errorf("mark %d after a refusal by 34", b.Mark())
	}
}

// The mark goes first: a report that could not be replaced must not let an older
// holder in, not even after a restart.
func TestSinkRaisesTheMarkBeforeTheReport(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.txt")
	s := open(t, path)
	write(t, s, 34, "first")
	ctx := &endsAfter{Context: t.Context(), looks: 1} // lives for the mark, not for the report
	if err := s.Write(ctx, 35, []byte("second")); !errors.Is(err, context.Canceled) {
		t.Fatalf("got error %v, want that of the context", err)
	}
	wantFile(t, path, "first")
	wantFile(t, path+".fence", "35\n")
	for _, s := range []*report.Sink{s, open(t, path)} {
		if err := s.Write(t.Context(), 34, []byte("old")); !errors.Is(err, lockfx.ErrStaleToken) {
			t.Errorf("got error %v, want ErrStaleToken", err)
		}
	}
	write(t, s, 35, "second")
	wantFile(t, path, "second")
}

// endsAfter is a context that has ended once it has been looked at often enough:
// the only way to end one between two files of one Write.
type endsAfter struct {
	context.Context
	looks int
}

func (c *endsAfter) Err() error {
	if c.looks--; c.looks >= 0 {
		return nil
	}
	return context.Canceled
}

func (c *endsAfter) Value(key any) any {
	return context.Background().Value(key) // keeps context.Cause from finding a parent
}

func TestSinkStopsWithTheCauseOfItsContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.txt")
	s := open(t, path)
	write(t, s, 34, "old")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(&lockfx.LostError{Key: "nightly", Token: 34, Reason: lockfx.ReasonExpired})
	for _, token := range []lockfx.Token{34, 35} {
		if err := s.Write(ctx, token, []byte("new")); !errors.Is(err, lockfx.ErrLost) {
			t.Errorf("token %d: got error %v, want the cause", token, err)
		}
	}
	wantFile(t, path, "old")
	if found := files(t, path); len(found) != 3 { // with the lock
		t.Errorf("left behind: %v", found)
	}
}

func TestSinkKeepsTheOldReportWhenTheNewOneFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gone", "report.txt")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	s := open(t, path)
	if err := os.Remove(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	err := s.Write(t.Context(), 34, []byte("lost"))
	if !errors.Is(err, os.ErrNotExist) || !strings.HasPrefix(err.Error(), fmt.Sprintf("write report %q: ", path)) {
		t.Errorf("got error %v", err)
	}
	if s.Mark() != 34 {
		t.Errorf("mark %d: an admitted token is seen, whether or not its report was written", s.Mark())
	}
	if err := s.Write(t.Context(), 33, nil); !errors.Is(err, lockfx.ErrStaleToken) {
		t.Errorf("got error %v, want ErrStaleToken", err)
	}
}

// A relative path stands for the same file for as long as the sink lives.
func TestSinkStaysWithItsFile(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	s := open(t, "report.txt")
	t.Chdir(t.TempDir())
	write(t, s, 34, "here")
	wantFile(t, filepath.Join(dir, "report.txt"), "here")
}

// However holders race, the greatest token's report is what stays.
func TestSinkUnderManyWriters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.txt")
	sinks := []*report.Sink{open(t, path), open(t, path), open(t, path)}
	const writers = 60
	var wg sync.WaitGroup
	for i, n := range rand.Perm(writers) {
		wg.Go(func() {
			token := lockfx.Token(n + 1)
			err := sinks[i%len(sinks)].Write(t.Context(), token, []byte("by "+token.String()))
			if err != nil && !errors.Is(err, lockfx.ErrStaleToken) {
				t.Error(err)
			}
			if err != nil && token == writers {
				t.Errorf("the greatest token was refused: %v", err)
			}
		})
	}
	wg.Wait()
	wantFile(t, path, fmt.Sprint("by ", writers))
	wantFile(t, path+".fence", fmt.Sprint(writers, "\n"))
}
