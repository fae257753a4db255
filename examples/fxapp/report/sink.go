package report

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/layered"
)

// Sink is the file that the report goes to, and the fence around it: beside the
// report it keeps a mark, the greatest fencing token it has seen, and refuses a
// writer with a smaller one. The mark lives in the file PATH.fence, as a decimal
// integer, and so survives the process.
//
// The mark is made durable BEFORE the report is replaced. After a crash between
// the two the mark is ahead of the report: the holder writes again, and no older
// one can. The other way round, an older holder could overwrite the newer report.
//
// A Sink is safe for concurrent use, also beside other Sinks for the same path, in
// this process and in others of this host: between one's look at the mark and its
// rename, another must not pass, so the check and the write are one step under a
// third file, PATH.lock. That lock has no lease and needs none: it is held for two
// renames, and ends with its process. A resource that compares by itself does
// without, such as a database row with
// UPDATE ... SET body = $1, fence = $2 WHERE fence <= $2.
type Sink struct {
	path string
	mark atomic.Int64 // the greatest token seen, on disk or offered
}

// lockTimeout is longer than anybody needs for two renames, unless it is suspended
// in between.
const lockTimeout = 5 * time.Second

// OpenSink returns the sink for the report at path, which need not exist yet, and
// reads its mark. It fails if the directory of path does not exist, if path is
// anything but a regular file, if the mark is corrupt, or if there is a report
// without a mark: then nobody knows which token it was written with.
func OpenSink(path string) (*Sink, error) {
	s, err := openSink(path)
	if err != nil {
		return nil, fmt.Errorf("open report sink %q: %w", path, err)
	}
	return s, nil
}

func openSink(path string) (*Sink, error) {
	if path == "" {
		return nil, errors.New("path must not be empty")
	}
	absolute, err := filepath.Abs(path) // a later change of directory must not lose the mark
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Dir(absolute)); err != nil {
		return nil, err
	}
	mark, err := readMark(absolute)
	if err != nil {
		return nil, err
	}
	s := &Sink{path: absolute}
	s.mark.Store(int64(mark))
	return s, nil
}

// Mark returns the greatest token that this Sink has seen, or 0 for none. It does
// not wait for a Write.
func (s *Sink) Mark() lockfx.Token { return lockfx.Token(s.mark.Load()) }

// Write replaces the report by body if token is no smaller than any token seen
// before. An equal one is accepted: the same holder writes again. Readers of the
// file see the old report or the new one, never a part.
//
// A smaller token, or one that is not valid, is refused with an error that matches
// [lockfx.ErrStaleToken], and no file is touched. When ctx has ended before the
// report is replaced, it is not, and the error wraps the cause. On any other error
// too the old report is whole, unless the error says that the directory could not
// be synced: then the new one is there but may not survive a crash of the machine.
// From a Write that was not refused as stale, the mark stays raised.
func (s *Sink) Write(ctx context.Context, token lockfx.Token, body []byte) error {
	err := s.admit(token, 0)
	if err == nil {
		// A token is judged also when ctx has ended: a stale one is to be told so.
		_, err = layered.WithLock(context.WithoutCancel(ctx), token,
			func(context.Context, layered.Call[lockfx.Token]) (struct{}, error) {
				return struct{}{}, s.write(ctx, token, body)
			},
			layered.WithFile(s.path+".lock"), layered.WithTimeout(lockTimeout))
	}
	if err != nil {
		return fmt.Errorf("write report %q: %w", s.path, err)
	}
	return nil
}

// write is called with the lock held.
func (s *Sink) write(ctx context.Context, token lockfx.Token, body []byte) error {
	onDisk, err := readMark(s.path)
	if err != nil {
		return err
	}
	if err := s.admit(token, onDisk); err != nil {
		return err
	}
	if token > onDisk {
		if err := replaceFile(ctx, markPath(s.path), []byte(token.String()+"\n")); err != nil {
			return fmt.Errorf("mark: %w", err)
		}
	}
	return replaceFile(ctx, s.path, body)
}

// admit raises the mark to token, or refuses it.
func (s *Sink) admit(token, onDisk lockfx.Token) error {
	seen := max(s.raise(max(onDisk, token)), onDisk)
	switch {
	case !token.Valid():
		return fmt.Errorf("%w: token %d must be at least 1; the greatest seen is %d", lockfx.ErrStaleToken, token, seen)
	case token < seen:
		return fmt.Errorf("%w: token %d is smaller than %d, the greatest seen", lockfx.ErrStaleToken, token, seen)
	}
	return nil
}

// raise makes the mark no smaller than to, and returns what it was.
func (s *Sink) raise(to lockfx.Token) lockfx.Token {
	for {
		seen := s.mark.Load()
		if int64(to) <= seen || s.mark.CompareAndSwap(seen, int64(to)) {
			return lockfx.Token(seen)
		}
	}
}
