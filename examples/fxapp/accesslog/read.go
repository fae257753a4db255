package accesslog

import (
	"context"
	"fmt"
	"io"
)

// Stats is what [Read] saw of a log.
type Stats struct {
	Lines     int64       // all lines, malformed ones included
	Bytes     int64       // bytes read, line ends included
	Malformed int64       // lines that are no entry
	Samples   []Malformed // the first of these, in the order of the log
}

// Malformed is a line that is no entry.
type Malformed struct {
	Line   int64  // counted from 1
	Reason string // for people; what it quotes of the line is escaped and short
}

// Read calls each for every entry of the log r, in its order. A line that is no
// entry or is too long is counted and passed over.
//
// Read ends at the end of r with a nil error, or early: when ctx ends, with an
// error that wraps its cause; when r fails, with an error that wraps that of r;
// when each returns an error, with that error, unchanged. The Stats are those of
// the lines read so far. A faulty option is an error before anything is read.
//
// ctx is looked at before every line and every call of r.Read. It can't wake up
// a Read of r that blocks: for a pipe, close it when ctx ends, as with
// [context.AfterFunc].
func Read(ctx context.Context, r io.Reader, opts Options, each func(Entry) error) (Stats, error) {
	var stats Stats
	opts, err := opts.withDefaults()
	if err != nil {
		return stats, fmt.Errorf("read access log: %w", err)
	}
	in := newLines(ctx, r, opts.MaxLine)
	reportAt := opts.ProgressEvery
	for {
		line, more, err := in.next()
		stats.Bytes += line.size
		if err != nil {
			return stats, fmt.Errorf("read access log: after line %d: %w", stats.Lines, err)
		}
		if !more {
			opts.Progress(stats.Lines, stats.Bytes)
			return stats, nil
		}
		stats.Lines++
		entry, err := line.entry()
		if err != nil {
			stats.addMalformed(err, opts.Samples)
		} else if err := each(entry); err != nil {
			return stats, err
		}
		if stats.Bytes >= reportAt {
			opts.Progress(stats.Lines, stats.Bytes)
			reportAt = stats.Bytes + opts.ProgressEvery
		}
	}
}

func (s *Stats) addMalformed(reason error, samples int) {
	s.Malformed++
	if len(s.Samples) < samples {
		s.Samples = append(s.Samples, Malformed{s.Lines, reason.Error()})
	}
}
