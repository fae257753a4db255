package nightly

import (
	"bytes"
	"context"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/examples/fxapp/accesslog"
	"github.com/lockfx/lockfx/examples/fxapp/report"
)

// Report writes the report once, if nobody else is about to: otherwise its error is
// a [lockfx.NotAcquiredError]. When the application stops, the error matches
// [lockfx.ErrDisposed].
type Report func(context.Context) (Summary, error)

// Summary is what a report that was written is about.
type Summary struct {
	Token lockfx.Token // that it was written with
	Stats accesslog.Stats
}

// Requests returns how many lines of the log were requests.
func (s Summary) Requests() int64 { return s.Stats.Lines - s.Stats.Malformed }

// Progress is told how far the reading is: four times or so, and at the end of the
// log. size is what the log measured when it was opened.
type Progress func(lines, bytes, size int64)

// Write reads the log to its end and writes the report on it. It stops soon after
// ctx has ended, and the old report then stays.
func Write(ctx context.Context, in *Input, out *Output, progress Progress) (Summary, error) {
	counted := report.New()
	stats, err := accesslog.Read(ctx, in, accesslog.Options{
		ProgressEvery: in.size/4 + 1,
		Progress:      func(lines, bytes int64) { progress(lines, bytes, in.size) },
	}, func(e accesslog.Entry) error {
		counted.Add(e)
		return nil
	})
	if err != nil {
		return Summary{}, err
	}
	var text bytes.Buffer
	if err := counted.Render(&text, stats); err != nil {
		return Summary{}, err
	}
	if err := out.Write(ctx, text.Bytes()); err != nil {
		return Summary{}, err
	}
	return Summary{out.token, stats}, nil
}
