package report_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"
	"weak"

	"github.com/lockfx/lockfx/examples/fxapp/accesslog"
	"github.com/lockfx/lockfx/examples/fxapp/report"
)

var update = flag.Bool("update", false, "write the golden report anew")

func render(t *testing.T, r *report.Report, stats accesslog.Stats) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.Render(&b, stats); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// The report on the sample is reviewed by eye once and kept from then on.
func TestReportOnTheSample(t *testing.T) {
	log, err := os.Open("../testdata/access.log")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	r := report.New()
	stats, err := accesslog.Read(t.Context(), log, accesslog.Options{}, func(e accesslog.Entry) error {
		r.Add(e)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	got := render(t, r, stats)
	const golden = "../testdata/report.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// entry is a request at an hour of one day.
func entry(hour int, host, path string, status int) accesslog.Entry {
	return accesslog.Entry{
		Host: host, Method: "GET", Path: path, Status: status, Bytes: 1 << 19,
		Time: time.Date(2026, time.March, 14, hour, 0, 0, 0, time.UTC),
	}
}

func TestReportDoesNotDependOnTheOrderOfEqualCounts(t *testing.T) {
	var entries []accesslog.Entry
	for i := range 26 {
		entries = append(entries, entry(i%24, "host-"+string(rune('a'+i)), "/"+string(rune('a'+i)), 200))
	}
	render26 := func() string {
		r := report.New()
		for _, e := range entries {
			r.Add(e)
		}
		return render(t, r, accesslog.Stats{})
	}
	forward := render26()
	slices.Reverse(entries)
	if backward := render26(); forward != backward {
		t.Errorf("got\n%s\nand\n%s", forward, backward)
	}
	if !strings.Contains(forward, "/j\n") || strings.Contains(forward, "/k\n") {
		t.Errorf("not the first ten by name:\n%s", forward)
	}
}

func TestReportLeavesTheQueryOut(t *testing.T) {
	r := report.New()
	r.Add(entry(1, "h", "/search?q=a", 200))
	r.Add(entry(1, "h", "/search?q=b", 200))
	if text := render(t, r, accesslog.Stats{}); !strings.Contains(text, "  2  100.00%  /search\n") {
		t.Errorf("got\n%s", text)
	}
}

// The strings of an entry share their line, which must not outlive it: a log of
// gigabytes has few names.
func TestReportKeepsNoLine(t *testing.T) {
	r := report.New()
	line := addFromLine(r)
	runtime.GC()
	if line.Value() != nil {
		t.Error("the report keeps a line alive")
	}
	if text := render(t, r, accesslog.Stats{}); !strings.Contains(text, "/path\n") {
		t.Errorf("got\n%s", text)
	}
}

//go:noinline
func addFromLine(r *report.Report) weak.Pointer[[1 << 16]byte] {
	line := new([1 << 16]byte)
	copy(line[:], "host/path")
	e := entry(1, "", "", 200)
	e.Host, e.Path = unsafe.String(&line[0], 4), unsafe.String(&line[4], 5)
	r.Add(e)
	return weak.Make(line)
}

// What a client sends must not reach the terminal of who reads the report.
func TestReportIsSafeToShow(t *testing.T) {
	r := report.New()
	for _, path := range []string{"/\x1b[2J", "/\u202egnp.exe", "/a\nTop hosts", "/\xff", "/" + strings.Repeat("é", 1000)} {
		r.Add(entry(1, "h\x07", path, 200))
	}
	text := render(t, r, accesslog.Stats{})
	for _, want := range []string{`/\x1b[2J`, `/\u202egnp.exe`, `/a\nTop hosts`, `/\xff`, "/" + strings.Repeat("é", 59) + "...\n", `h\a`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing in\n%s", want, text)
		}
	}
	for _, r := range text {
		if r != '\n' && (r < ' ' || r == 0x7f || r == 0x202e || r == '\ufffd') {
			t.Errorf("%q in\n%q", r, text)
		}
	}
}

func TestReportWithoutEntries(t *testing.T) {
	want := `Access report
  requests     0
  hosts        0
  bytes        0 (0.0 MiB)
  error rate   none (4xx and 5xx)
  odd requests 0
  malformed    7 of 7 lines

Malformed lines
  line 1: line is empty
  and 6 more
`
	stats := accesslog.Stats{Lines: 7, Malformed: 7, Samples: []accesslog.Malformed{{Line: 1, Reason: "line is empty"}}}
	if got := render(t, report.New(), stats); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestRenderReturnsTheErrorOfItsWriter(t *testing.T) {
	full := errors.New("disk full")
	err := report.New().Render(writerFunc(func([]byte) (int, error) { return 0, full }), accesslog.Stats{})
	if !errors.Is(err, full) || err.Error() != "render report: disk full" {
		t.Errorf("got error %v", err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
