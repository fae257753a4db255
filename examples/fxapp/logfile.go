package main

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/lockfx/lockfx/examples/fxapp/nightly"
)

//go:embed testdata/access.log
var sample embed.FS

// chooseLog returns the log at path, or the sample if path is "". It fails early if
// that can't be read. The log is read once for each report, so it must be a file
// that stays.
func chooseLog(path string) (nightly.Log, error) {
	if path == "" {
		return func(context.Context) (fs.File, error) { return sample.Open("testdata/access.log") }, nil
	}
	info, err := os.Stat(path) // a pipe would make Open wait for its writer
	if err != nil {
		return nil, fmt.Errorf("access log: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("access log: %q must be a regular file", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("access log: %w", err)
	}
	if err := file.Close(); err != nil {
		return nil, fmt.Errorf("access log: %w", err)
	}
	return func(context.Context) (fs.File, error) { return os.Open(path) }, nil
}

// slowly returns log as a reader sees it who takes at least pace for it, so that
// people can watch.
func slowly(log nightly.Log, pace time.Duration) nightly.Log {
	return func(ctx context.Context) (fs.File, error) {
		file, err := log(ctx)
		if err != nil {
			return nil, err
		}
		info, err := file.Stat()
		if err != nil {
			_ = file.Close()
			return nil, err
		}
		return &slowFile{file, ctx, pace, max(info.Size(), 1), 0}, nil
	}
}

type slowFile struct {
	fs.File
	ctx  context.Context // of the run that reads
	pace time.Duration
	size int64
	owed time.Duration // not yet waited for
}

const (
	slowSteps = 40                    // a short log is read in about so many
	slowNap   = 10 * time.Millisecond // shorter ones would take longer than they should
)

func (f *slowFile) Read(p []byte) (int, error) {
	n, err := f.File.Read(p[:min(int64(len(p)), f.size/slowSteps+1)])
	f.owed += time.Duration(float64(f.pace) * float64(n) / float64(f.size))
	if f.owed >= slowNap {
		sleep(f.ctx, f.owed)
		f.owed = 0
	}
	return n, err
}

// sleep waits for d, or for the end of ctx.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
