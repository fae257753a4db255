package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"time"
)

// options are the flags.
type options struct {
	log     string // "" stands for the sample
	out     string // "" stands for a new temporary directory
	serve   string // "" stands for the story, or for competing
	store   storeChoice
	pace    time.Duration
	lead    bool
	eof     bool
	verbose bool
}

const (
	defaultPace = 1600 * time.Millisecond
	maxPace     = time.Minute
)

// parseOptions reads the flags. What is wrong is told on stderr, with the usage.
func parseOptions(args []string, stderr io.Writer) (options, error) {
	o := options{pace: defaultPace}
	flags := flag.NewFlagSet("fxapp", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Func("log", "read the access log `FILE` instead of the sample", notEmpty(&o.log))
	flags.Func("out", "write the report into the directory `DIR`, which is made if need be, instead of a temporary one", notEmpty(&o.out))
	flags.Func("serve", "be one replica with an HTTP server on `ADDR`, such as 127.0.0.1:8080", func(s string) error {
		if _, _, err := net.SplitHostPort(s); err != nil {
			return fmt.Errorf("must be host:port: %w", err)
		}
		o.serve = s
		return nil
	})
	flags.Func("store", "keep the lease in `STORE`: memory (default), or dir:PATH, a directory that processes share", o.store.parse)
	flags.Func("pace", "take at least this `TIME` to read the log, so that it can be watched; 0 to 1m (default 1.6s)", func(s string) error {
		d, err := time.ParseDuration(s)
		if err != nil || d < 0 || d > maxPace {
			return fmt.Errorf("must be a duration from 0 to %v", maxPace)
		}
		o.pace = d
		return nil
	})
	flags.BoolVar(&o.lead, "lead", false, "tell the story of a leader and its successors; with -store dir:PATH, be one process that campaigns")
	flags.BoolVar(&o.eof, "eof", false, "stop at the end of standard input, as at Ctrl-C")
	flags.BoolVar(&o.verbose, "v", false, "log what fx and the lock do, on stderr")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	var err error
	switch {
	case flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case o.lead && o.serve != "":
		err = errors.New("-lead and -serve exclude each other")
	default:
		return o, nil
	}
	_, _ = fmt.Fprintln(stderr, err)
	flags.Usage()
	return o, err
}

func notEmpty(to *string) func(string) error {
	return func(s string) error {
		if s == "" {
			return errors.New("must not be empty")
		}
		*to = s
		return nil
	}
}
