package accesslog_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/lockfx/lockfx/examples/fxapp/accesslog"
)

func BenchmarkParse(b *testing.B) {
	text := line("GET /docs/install HTTP/1.1", `200 11800 "https://example.com/docs/" "Mozilla/5.0 (X11; Linux x86_64; rv:124.0)"`)
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := accesslog.Parse(text); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	log, err := io.ReadAll(openSample(b))
	if err != nil {
		b.Fatal(err)
	}
	var lines int64
	b.ReportAllocs()
	b.SetBytes(int64(len(log)))
	for b.Loop() {
		stats, err := accesslog.Read(b.Context(), bytes.NewReader(log), accesslog.Options{}, func(accesslog.Entry) error { return nil })
		if err != nil {
			b.Fatal(err)
		}
		lines += stats.Lines
	}
	b.ReportMetric(float64(lines)/b.Elapsed().Seconds(), "lines/s")
}

// Reading costs about one allocation a line: the string that all fields share.
func TestReadAllocatesOncePerLine(t *testing.T) {
	const entries = 1000
	log := bytes.Repeat([]byte(good+"\n"), entries)
	perLog := testing.AllocsPerRun(5, func() {
		_, err := accesslog.Read(t.Context(), bytes.NewReader(log), accesslog.Options{}, func(accesslog.Entry) error { return nil })
		if err != nil {
			t.Error(err)
		}
	})
	if perLog > entries+20 {
		t.Errorf("%v allocations for %d lines", perLog, entries)
	}
}
