package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/layered"
)

// sink is where the report goes. It refuses a token that is smaller than one it has seen,
// with an error that matches [lockfx.ErrStaleToken].
type sink interface {
	Write(ctx context.Context, fence lockfx.Token, text string) error
}

// file is a sink whose first line is the fencing token that it was written with. The
// comparison and the write are one step between all processes of the host: otherwise a
// newer writer could slip in between. A lock of package layered sees to that; it needs no
// lease, since it is held for one rename.
type file struct{ path string }

func openSink(path string) (file, error) {
	path, err := filepath.Abs(path)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o755)
	}
	return file{path}, err
}

func (f file) Write(ctx context.Context, fence lockfx.Token, text string) error {
	step := func(context.Context, layered.Call[string]) (struct{}, error) {
		seen, err := f.seen()
		switch {
		case err != nil:
			return struct{}{}, err
		case !fence.Valid() || fence < seen:
			return struct{}{}, fmt.Errorf("%w: token %d is smaller than %d, the greatest seen", lockfx.ErrStaleToken, fence, seen)
		case ctx.Err() != nil:
			return struct{}{}, context.Cause(ctx)
		}
		return struct{}{}, f.replace(fence.String() + "\n" + text)
	}
	_, err := layered.WithLock(context.WithoutCancel(ctx), f.path, step, layered.WithFile(f.path+".lock"), layered.WithTimeout(5*time.Second))
	if err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(f.path), err)
	}
	return nil
}

// seen returns the token that the report was written with, or 0 if there is none.
func (f file) seen() (lockfx.Token, error) {
	text, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	first, _, _ := strings.Cut(string(text), "\n")
	token, parsing := strconv.ParseInt(first, 10, 64)
	return lockfx.Token(token), errors.Join(err, parsing)
}

// replace writes a new file beside the old one and renames it: readers, and a crash, see
// the one or the other, never a part.
func (f file) replace(text string) error {
	next, err := os.CreateTemp(filepath.Dir(f.path), ".report-")
	if err != nil {
		return err
	}
	_, err = next.WriteString(text)
	err = errors.Join(err, next.Sync(), next.Close())
	if err == nil {
		err = os.Rename(next.Name(), f.path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(next.Name()))
	}
	return nil
}
