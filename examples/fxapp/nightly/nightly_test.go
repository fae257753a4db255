package nightly_test

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"go.uber.org/fx/fxtest"
	"go.uber.org/goleak"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/examples/fxapp/nightly"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const entry = `192.0.2.7 - - [14/Mar/2026:09:26:53 +0100] "GET / HTTP/1.1" 200 5316` + "\n"

// sink keeps what is written to it.
type sink struct {
	token lockfx.Token
	body  string
	err   error
}

func (s *sink) Write(_ context.Context, token lockfx.Token, body []byte) error {
	s.token, s.body = token, string(body)
	return s.err
}

// logOf returns a log with the given text, and whether it is open.
func logOf(text string) (log nightly.Log, open *bool) {
	open = new(bool)
	files := fstest.MapFS{"log": {Data: []byte(text)}}
	return func(context.Context) (fs.File, error) {
		file, err := files.Open("log")
		*open = true
		return closing{file, open}, err
	}, open
}

type closing struct {
	fs.File
	open *bool
}

func (c closing) Close() error {
	*c.open = false
	return c.File.Close()
}

func quiet(_, _, _ int64) {}

func TestWrite(t *testing.T) {
	lc, to := fxtest.NewLifecycle(t), new(sink)
	log, open := logOf(strings.Repeat(entry, 3) + "no entry\n")
	in, err := nightly.OpenInput(t.Context(), lc, log)
	if err != nil || !*open {
		t.Fatal(*open, err)
	}
	var read []int64
	lc.RequireStart()
	got, err := nightly.Write(t.Context(), in, nightly.NewOutput(34, to), func(lines, bytes, size int64) {
		if size != int64(3*len(entry)+len("no entry\n")) || bytes > size {
			t.Errorf("read %d of %d bytes", bytes, size)
		}
		read = append(read, lines)
	})
	if err != nil {
		t.Fatal(err)
	}
	if got.Token != 34 || got.Requests() != 3 || got.Stats.Malformed != 1 {
		t.Errorf("got %+v", got)
	}
	if to.token != 34 || !strings.Contains(to.body, "requests     3\n") {
		t.Errorf("written with token %d:\n%s", to.token, to.body)
	}
	if n := len(read); n == 0 || n > 5 || read[n-1] != 4 {
		t.Errorf("progress at lines %v", read)
	}
	if !*open {
		t.Error("the log was closed during the run")
	}
	lc.RequireStop()
	if *open {
		t.Error("the log is open after the run")
	}
}

// Nothing is written when the log was not read to its end.
func TestWriteStopsWithItsContext(t *testing.T) {
	lc, to := fxtest.NewLifecycle(t), new(sink)
	log, _ := logOf(strings.Repeat(entry, 1000))
	in, err := nightly.OpenInput(t.Context(), lc, log)
	if err != nil {
		t.Fatal(err)
	}
	defer lc.RequireStart().RequireStop()
	ctx, cancel := context.WithCancelCause(t.Context())
	got, err := nightly.Write(ctx, in, nightly.NewOutput(34, to), func(_, _, _ int64) { cancel(lockfx.ErrDisposed) })
	if !errors.Is(err, lockfx.ErrDisposed) || got.Token != 0 || to.token != 0 {
		t.Errorf("got %+v, %v; written with token %d", got, err, to.token)
	}
}

func TestWriteReturnsTheErrorOfItsSink(t *testing.T) {
	lc, to := fxtest.NewLifecycle(t), &sink{err: lockfx.ErrStaleToken}
	log, _ := logOf(entry)
	in, err := nightly.OpenInput(t.Context(), lc, log)
	if err != nil {
		t.Fatal(err)
	}
	defer lc.RequireStart().RequireStop()
	if got, err := nightly.Write(t.Context(), in, nightly.NewOutput(34, to), quiet); !errors.Is(err, lockfx.ErrStaleToken) || got.Token != 0 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestOpenInputFails(t *testing.T) {
	lc := fxtest.NewLifecycle(t)
	if _, err := nightly.OpenInput(t.Context(), lc, func(context.Context) (fs.File, error) { return nil, fs.ErrPermission }); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("got error %v", err)
	}
	open := true
	log := func(context.Context) (fs.File, error) { return closing{unknown{}, &open}, nil }
	if _, err := nightly.OpenInput(t.Context(), lc, log); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("got error %v", err)
	}
	lc.RequireStart().RequireStop()
	if open {
		t.Error("the log stays open")
	}
}

// unknown is a file that does not tell about itself.
type unknown struct{ fs.File }

func (unknown) Stat() (fs.FileInfo, error) { return nil, fs.ErrInvalid }
func (unknown) Close() error               { return nil }
