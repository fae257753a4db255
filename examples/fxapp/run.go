package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/examples/fxapp/report"
)

// The codes that the program exits with.
const (
	exitOK          = 0
	exitFault       = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// errInterrupted: a signal came before the story was told.
var errInterrupted = errors.New("interrupted")

// run is the program. The end of ctx stops it in order. It returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return runOver(ctx, nil, args, stdout, stderr)
}

// runOver is run over a given store; nil stands for the one that the flags choose.
func runOver(ctx context.Context, store lockfx.Store, args []string, stdout, stderr io.Writer) int {
	opts, err := parseOptions(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		return exitUsage
	}
	switch err := execute(ctx, store, opts, &console{w: stdout}, stderr); err {
	case nil:
		return exitOK
	case errInterrupted: //nolint:errorlint // joined with a fault, the fault counts
		return exitInterrupted
	default:
		_, _ = fmt.Fprintln(stderr, "fxapp:", err)
		return exitFault
	}
}

func execute(ctx context.Context, store lockfx.Store, opts options, out *console, stderr io.Writer) error {
	if store == nil {
		chosen, err := opts.store.open()
		if err != nil {
			return err
		}
		return join(execute(ctx, chosen, opts, out, stderr), closeStore(chosen))
	}
	openLog, err := chooseLog(opts.log)
	if err != nil {
		return err
	}
	path, err := reportPath(opts.out)
	if err != nil {
		return err
	}
	w := world{
		store:      store,
		log:        openLog,
		reportFile: path,
		logger:     newLogger(opts.verbose, stderr),
		out:        out,
	}
	if opts.eof {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		go func() {
			defer cancel()
			_, _ = io.Copy(io.Discard, os.Stdin)
		}()
	}
	switch {
	case opts.serve != "":
		return serve(ctx, w, opts)
	case opts.lead && opts.store.shared():
		return campaign(ctx, w, processName())
	case opts.lead:
		return tellLeading(ctx, w, stderr)
	case opts.store.shared():
		return compete(ctx, w, processName(), opts.pace)
	default:
		return tellStory(ctx, w, opts.pace)
	}
}

// reportPath returns where the report goes: a file in dir, or in a new temporary
// directory. It fails early if no replica could write it.
func reportPath(dir string) (string, error) {
	var err error
	if dir == "" {
		dir, err = os.MkdirTemp("", "fxapp-")
	} else {
		err = os.MkdirAll(dir, 0o755)
	}
	if err != nil {
		return "", err
	}
	path, err := filepath.Abs(filepath.Join(dir, "report.txt"))
	if err != nil {
		return "", err
	}
	_, err = report.OpenSink(path)
	return path, err
}
