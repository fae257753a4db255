package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/lockfx/lockfx"
)

// Report writes the report once, if nobody else is about to. The handlers of the service
// take one; a lock is behind it, which they need not know of.
type Report func(context.Context) error

const (
	pages = 4
	pace  = 400 * time.Millisecond // for a page, so that it can be watched
)

// Writer is a run's own way to the report: it carries the fencing token of the run. Each
// run has one of its own, since the lock gets its constructor by [fxlock.PerRun].
type Writer struct {
	sink  sink
	fence lockfx.Token
}

// NewWriter takes the token as a parameter, like any other value.
func NewWriter(to sink, fence lockfx.Token) *Writer { return &Writer{to, fence} }

func (w *Writer) Write(ctx context.Context, text string) error {
	return w.sink.Write(ctx, w.fence, text)
}

// writeReport is the work under the lock. It stops between two pages when its context ends:
// because the caller gave up, the lease was lost, or the application stops.
func writeReport(ctx context.Context, holder lockfx.Holder, w *Writer, p progress) error {
	var text strings.Builder
	for page := 1; page <= pages; page++ {
		if err := sleep(ctx, pace); err != nil {
			return fmt.Errorf("page %d: %w", page, err)
		}
		fmt.Fprintf(&text, "page %d, under token %d\n", page, holder.Token())
		p(page)
	}
	return w.Write(ctx, text.String())
}

// progress is called after each page.
type progress func(page int)

// sleep returns the cause if ctx ends first.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
