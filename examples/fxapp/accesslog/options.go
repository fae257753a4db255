package accesslog

import (
	"errors"
	"fmt"
)

// Defaults of [Options].
const (
	DefaultMaxLine       = 64 << 10
	DefaultSamples       = 5
	DefaultProgressEvery = 1 << 20
)

// Options are what a caller of [Read] may set. Zero values stand for the
// defaults; negative ones are refused.
type Options struct {
	// MaxLine is the length of the longest line that is parsed, in bytes without
	// its line end. A longer one is malformed. Read needs about this much memory.
	MaxLine int
	// Samples is how many malformed lines are kept.
	Samples int
	// Progress, if set, is called from Read's goroutine whenever at least
	// ProgressEvery more bytes have been read, and at the end of the log. Its
	// arguments are the lines and bytes read so far.
	Progress      func(lines, bytes int64)
	ProgressEvery int64
}

func (o Options) withDefaults() (Options, error) {
	var faults []error
	check := func(name string, value int64) {
		if value < 0 {
			faults = append(faults, fmt.Errorf("option %s: %d must not be negative", name, value))
		}
	}
	check("MaxLine", int64(o.MaxLine))
	check("Samples", int64(o.Samples))
	check("ProgressEvery", o.ProgressEvery)
	if o.MaxLine == 0 {
		o.MaxLine = DefaultMaxLine
	}
	if o.Samples == 0 {
		o.Samples = DefaultSamples
	}
	if o.ProgressEvery == 0 {
		o.ProgressEvery = DefaultProgressEvery
	}
	if o.Progress == nil {
		o.Progress = func(_, _ int64) {}
	}
	return o, errors.Join(faults...)
}
