package report_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockfx/lockfx/examples/fxapp/report"
)

func TestSinkNeverGuessesAMark(t *testing.T) {
	for _, mark := range []string{
		"", "\n", "34", "34\n\n", "34\r\n", " 34\n", "+34\n", "034\n", "0\n", "-34\n", "3.4e1\n",
		"0x22\n", "thirty-four\n", "9223372036854775808\n", "\x00\n", "34\n35\n",
	} {
		path := filepath.Join(t.TempDir(), "report.txt")
		s := open(t, path)
		write(t, s, 34, "first")
		if err := os.WriteFile(path+".fence", []byte(mark), 0o600); err != nil {
			t.Fatal(err)
		}
		before := files(t, path)
		if _, err := report.OpenSink(path); err == nil || !strings.Contains(err.Error(), "is corrupt") {
			t.Errorf("mark %q: open: got error %v", mark, err)
		}
		if err := s.Write(t.Context(), 35, []byte("second")); err == nil || !strings.Contains(err.Error(), "is corrupt") {
			t.Errorf("mark %q: write: got error %v", mark, err)
		}
		if after := files(t, path); !maps.Equal(before, after) {
			t.Errorf("mark %q: files were touched\nbefore %v\nafter  %v", mark, before, after)
		}
	}
}

func TestSinkNeedsTheMarkOfAReportThatExists(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.txt")
	s := open(t, path)
	write(t, s, 34, "first")
	if err := os.Remove(path + ".fence"); err != nil {
		t.Fatal(err)
	}
	const want = "exists without its mark"
	if _, err := report.OpenSink(path); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("open: got error %v", err)
	}
	if err := s.Write(t.Context(), 35, []byte("second")); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("write: got error %v", err)
	}
	wantFile(t, path, "first")
}

func TestOpenSinkRefusesWhatItCannotGuard(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(dir, "target"), link); err != nil {
		t.Fatal(err)
	}
	markIsDir := filepath.Join(dir, "report.txt")
	if err := os.Mkdir(markIsDir+".fence", 0o700); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"":                                 "path must not be empty",
		dir:                                "must be a regular file",
		link:                               "must be a regular file",
		filepath.Join(dir, "none", "file"): "no such file",
		markIsDir:                          "is a directory",
	} {
		_, err := report.OpenSink(path)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), fmt.Sprintf("open report sink %q: ", path)) {
			t.Errorf("%q: got error %v, want one with %q", path, err, want)
		}
	}
}
