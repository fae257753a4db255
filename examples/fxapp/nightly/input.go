package nightly

import (
	"context"
	"io/fs"

	"go.uber.org/fx"
)

// Log opens the log. Each run reads it anew, so that a log that was rotated is the
// new one. ctx is that of the run and ends with it.
type Log func(ctx context.Context) (fs.File, error)

// Input is the log as one run reads it.
type Input struct {
	fs.File
	size int64 // when it was opened; it may grow
}

// OpenInput opens the log for the run that lc belongs to, which closes it.
func OpenInput(ctx context.Context, lc fx.Lifecycle, log Log) (*Input, error) {
	file, err := log(ctx)
	if err != nil {
		return nil, err
	}
	lc.Append(fx.StopHook(file.Close))
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	return &Input{file, info.Size()}, nil
}
