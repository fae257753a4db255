package accesslog_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/lockfx/lockfx/examples/fxapp/accesslog"
)

var good = line("GET /a HTTP/1.1", `200 5 "-" "agent/1"`)

// read returns the paths that Read hands on.
func read(t *testing.T, r io.Reader, opts accesslog.Options) (paths []string, stats accesslog.Stats) {
	t.Helper()
	stats, err := accesslog.Read(t.Context(), r, opts, func(e accesslog.Entry) error {
		paths = append(paths, e.Path)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths, stats
}

func TestReadCountsAndKeepsTheFirstMalformedLines(t *testing.T) {
	log := strings.Join([]string{good, "one", good, "", "three", good}, "\n") + "\n"
	paths, stats := read(t, strings.NewReader(log), accesslog.Options{Samples: 2})
	if len(paths) != 3 {
		t.Errorf("got entries %q, want three", paths)
	}
	want := accesslog.Stats{
		Lines: 6, Bytes: int64(len(log)), Malformed: 3,
		Samples: []accesslog.Malformed{{2, "no time in brackets"}, {4, "line is empty"}},
	}
	if !reflect.DeepEqual(stats, want) {
		t.Errorf("got  %+v\nwant %+v", stats, want)
	}
}

func TestReadLineEnds(t *testing.T) {
	for name, log := range map[string]string{
		"LF": good + "\n" + good + "\n", "CRLF": good + "\r\n" + good + "\r\n", "last without": good + "\n" + good,
	} {
		paths, stats := read(t, iotest.OneByteReader(strings.NewReader(log)), accesslog.Options{})
		if len(paths) != 2 || stats.Lines != 2 || stats.Malformed != 0 || stats.Bytes != int64(len(log)) {
			t.Errorf("%s: %d entries, %+v", name, len(paths), stats)
		}
	}
	if paths, stats := read(t, strings.NewReader(""), accesslog.Options{}); len(paths) != 0 || stats.Lines != 0 {
		t.Errorf("empty log: %d entries, %+v", len(paths), stats)
	}
}

func TestReadPassesOverLinesThatAreTooLong(t *testing.T) {
	limit := len(good)
	for name, tooLong := range map[string]string{
		"by one byte":     good + " ",
		"than the buffer": strings.Repeat("x", 1<<20),
	} {
		for _, end := range []string{"\n", "\r\n"} {
			log := good + end + tooLong + end + good + end
			paths, stats := read(t, strings.NewReader(log), accesslog.Options{MaxLine: limit})
			want := []accesslog.Malformed{{2, fmt.Sprintf("line is longer than %d bytes", limit)}}
			if len(paths) != 2 || stats.Lines != 3 || stats.Bytes != int64(len(log)) || !reflect.DeepEqual(stats.Samples, want) {
				t.Errorf("%s, %q: %d entries, %+v", name, end, len(paths), stats)
			}
		}
	}
}

func TestReadTakesLongLinesUpToTheLimit(t *testing.T) {
	log := line("GET /"+strings.Repeat("a", 1<<20)+" HTTP/1.1", "200 5") + "\r\n"
	paths, _ := read(t, strings.NewReader(log), accesslog.Options{MaxLine: len(log) - len("\r\n")})
	if len(paths) != 1 || len(paths[0]) != 1<<20+1 {
		t.Errorf("got %d entries", len(paths))
	}
}

func TestReadTellsProgress(t *testing.T) {
	size := int64(len(good) + 1)
	log := strings.Repeat(good+"\n", 10)
	type step struct{ lines, bytes int64 }
	var steps []step
	read(t, strings.NewReader(log), accesslog.Options{
		ProgressEvery: 4 * size,
		Progress:      func(lines, bytes int64) { steps = append(steps, step{lines, bytes}) },
	})
	want := []step{{4, 4 * size}, {8, 8 * size}, {10, 10 * size}}
	if !reflect.DeepEqual(steps, want) {
		t.Errorf("got %v, want %v", steps, want)
	}
}

func TestReadStopsWithTheCauseOfItsContext(t *testing.T) {
	lost := errors.New("lease lost")
	ctx, cancel := context.WithCancelCause(t.Context())
	entries := 0
	stats, err := accesslog.Read(ctx, strings.NewReader(strings.Repeat(good+"\n", 10)), accesslog.Options{}, func(accesslog.Entry) error {
		if entries++; entries == 3 {
			cancel(lost)
		}
		return nil
	})
	if !errors.Is(err, lost) || entries != 3 || stats.Lines != 3 || stats.Bytes != 3*int64(len(good)+1) {
		t.Errorf("got %d entries, %+v, error %v", entries, stats, err)
	}
	if want := "read access log: after line 3: stopped: lease lost"; err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
}

// A context that ended with the last line is no success: whoever lost the lease
// must not go on with the whole log's numbers.
func TestReadStopsAfterTheLastLine(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	_, err := accesslog.Read(ctx, strings.NewReader(good), accesslog.Options{}, func(accesslog.Entry) error {
		cancel(io.EOF) // the most misleading cause there is
		return nil
	})
	if !errors.Is(err, io.EOF) {
		t.Errorf("got error %v, want the cause", err)
	}
}

func TestReadStopsInsideALineWithoutEnd(t *testing.T) {
	for name, size := range map[string]int{"in large pieces": 1 << 20, "byte by byte": 1} {
		ctx, cancel := context.WithCancel(t.Context())
		calls := 0
		endless := readerFunc(func(p []byte) (int, error) {
			switch calls++; calls {
			case 100:
				cancel()
			case 101:
				return 0, errors.New("read on after the end of the context")
			}
			p = p[:min(size, len(p))]
			for i := range p {
				p[i] = 'x'
			}
			return len(p), nil
		})
		_, err := accesslog.Read(ctx, endless, accesslog.Options{MaxLine: 10}, func(accesslog.Entry) error { return nil })
		if !errors.Is(err, context.Canceled) || calls != 100 {
			t.Errorf("%s: got error %v after %d reads", name, err, calls)
		}
		cancel()
	}
}

func TestReadReturnsTheErrorOfEachUnchanged(t *testing.T) {
	full := errors.New("disk full")
	stats, err := accesslog.Read(t.Context(), strings.NewReader(good+"\n"+good), accesslog.Options{}, func(accesslog.Entry) error { return full })
	if err != full || stats.Lines != 1 { //nolint:errorlint // the error itself is promised, not one that wraps it
		t.Errorf("got %+v, error %v", stats, err)
	}
}

func TestReadWrapsTheErrorOfTheReader(t *testing.T) {
	broken := errors.New("broken disk")
	r := io.MultiReader(strings.NewReader(good+"\n"+good[:20]), iotest.ErrReader(broken))
	stats, err := accesslog.Read(t.Context(), r, accesslog.Options{}, func(accesslog.Entry) error { return nil })
	if !errors.Is(err, broken) || stats.Lines != 1 || stats.Bytes != int64(len(good)+1+20) {
		t.Errorf("got %+v, error %v", stats, err)
	}
	if want := "read access log: after line 1: broken disk"; err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
}

func TestReadNamesAllFaultyOptions(t *testing.T) {
	untouched := readerFunc(func([]byte) (int, error) {
		t.Error("read in spite of faulty options")
		return 0, io.EOF
	})
	_, err := accesslog.Read(t.Context(), untouched, accesslog.Options{MaxLine: -1, Samples: -2, ProgressEvery: -3}, nil)
	want := "read access log: option MaxLine: -1 must not be negative\n" +
		"option Samples: -2 must not be negative\n" +
		"option ProgressEvery: -3 must not be negative"
	if err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
