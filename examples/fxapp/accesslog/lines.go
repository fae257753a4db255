package accesslog

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
)

// bufferSize keeps the reads large when the lines may only be short.
const bufferSize = 64 << 10

// lines cuts a reader into lines of bounded length, until a context ends.
type lines struct {
	in  stoppable
	buf *bufio.Reader
	max int
}

// line is one line of the input, valid until the next one is read.
type line struct {
	text []byte // without its end; only a part of it if the line is too long
	size int64  // with its end
	long int    // the limit that the line exceeds, or 0
}

func newLines(ctx context.Context, r io.Reader, limit int) lines {
	in := stoppable{ctx, r}
	// With room for the limit and a line end, a full buffer means a long line.
	return lines{in, bufio.NewReaderSize(in, max(bufferSize, limit+len("\r\n"))), limit}
}

// next reads one line. The last one may lack its line end; after it, more is
// false. On an error the line is incomplete, but its size is right.
func (l lines) next() (read line, more bool, err error) {
	for {
		if err := l.in.stopped(); err != nil {
			return read, false, err
		}
		chunk, err := l.buf.ReadSlice('\n')
		read.size += int64(len(chunk))
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		read.text = bytes.TrimSuffix(bytes.TrimSuffix(chunk, []byte("\n")), []byte("\r"))
		if lineEnd := len(chunk) - len(read.text); read.size-int64(lineEnd) > int64(l.max) {
			read.long = l.max
		}
		if err == io.EOF {
			return read, read.size > 0, nil
		}
		return read, true, err
	}
}

// entry parses the line.
func (l line) entry() (Entry, error) {
	if l.long > 0 {
		return Entry{}, fmt.Errorf("line is longer than %d bytes", l.long)
	}
	return Parse(string(l.text))
}

// stoppable is a reader that fails once its context has ended.
type stoppable struct {
	ctx context.Context
	r   io.Reader
}

func (s stoppable) Read(p []byte) (int, error) {
	if err := s.stopped(); err != nil {
		return 0, err
	}
	return s.r.Read(p)
}

// stopped says why the context has ended, or returns nil. It wraps the cause, so
// that a cause of [io.EOF] is not taken for the end of the input.
func (s stoppable) stopped() error {
	if s.ctx.Err() == nil {
		return nil
	}
	return fmt.Errorf("stopped: %w", context.Cause(s.ctx))
}
