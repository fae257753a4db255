package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"go.uber.org/fx"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/examples/fxapp/nightly"
	"github.com/lockfx/lockfx/examples/fxapp/pause"
)

// actor is a replica that plays in the story.
type actor struct {
	name    string
	app     *fx.App
	process *pause.Process
	report  nightly.Report // nil if app could not be built
	read    chan struct{}  // capacity 1: a part of the log has been read
}

// newActor returns a replica that works slowly enough to be watched, tells what it
// does, and can be paused before it writes.
func newActor(name string, w world, pace time.Duration) *actor {
	a := &actor{name: name, process: pause.NewProcess(), read: make(chan struct{}, 1)}
	a.app = fx.New(
		w.replica(name, a.process),
		fx.Decorate(
			func(log nightly.Log) nightly.Log { return tellingLog(slowly(log, pace), name, w.out) },
			func(sink nightly.Sink) nightly.Sink { return pausingSink{tellingSink{sink, name, w.out}, a.process} },
			func(progress nightly.Progress) nightly.Progress { return a.signalling(progress) },
		),
		fx.Populate(&a.report),
	)
	return a
}

// stop stops the replica and says so once all else has been said about it.
func (a *actor) stop(out *console) error {
	err := stop(a.app)
	a.process.Wait()
	if err != nil {
		return fmt.Errorf("stop %s: %w", a.name, err)
	}
	out.say(a.name, "has stopped")
	return nil
}

// signalling returns progress that signals a.read as well.
func (a *actor) signalling(progress nightly.Progress) nightly.Progress {
	return func(lines, bytes, size int64) {
		progress(lines, bytes, size)
		select {
		case a.read <- struct{}{}:
		default:
		}
	}
}

// pausingSink is where a process can be paused, after its last look at the lease.
type pausingSink struct {
	nightly.Sink
	process *pause.Process
}

func (s pausingSink) Write(ctx context.Context, token lockfx.Token, body []byte) error {
	return s.process.Checkpoint(ctx, func() error { return s.Sink.Write(ctx, token, body) })
}

// tellingSink tells what becomes of a write.
type tellingSink struct {
	nightly.Sink
	who string
	out *console
}

func (s tellingSink) Write(ctx context.Context, token lockfx.Token, body []byte) error {
	err := s.Sink.Write(ctx, token, body)
	switch {
	case err == nil:
		s.out.say(s.who, "has written the report with token %d", token)
	case errors.Is(err, lockfx.ErrStaleToken):
		s.out.say(s.who, "IS REFUSED: %v", err)
	default:
		s.out.say(s.who, "has not written: %v", err)
	}
	return err
}

// tellingLog returns log that tells when it is closed.
func tellingLog(log nightly.Log, who string, out *console) nightly.Log {
	return func(ctx context.Context) (fs.File, error) {
		file, err := log(ctx)
		if err != nil {
			return nil, err
		}
		return tellingFile{file, func() { out.say(who, "closes the log") }}, nil
	}
}

type tellingFile struct {
	fs.File
	closed func()
}

func (f tellingFile) Close() error {
	f.closed()
	return f.File.Close()
}
