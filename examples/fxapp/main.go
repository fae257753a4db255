// Command fxapp is a tour of lockfx: replicas of one service that want to write the same
// report. Without flags it tells a story of a few seconds in one process: one replica wins
// the lock; one is paused past its lease, and its late write is refused; one is stopped in
// the middle of its work. With -lead the replicas campaign instead, and a leader that is
// paused is succeeded by another.
//
// With -store dir:PATH it is one replica, among all processes that share the directory:
// start it in two terminals. With -serve it has an HTTP server.
//
// It exits with 0 when the story was told or a signal stopped the replica, 1 on a fault,
// and 2 on wrong flags. A lease is released first, in every case.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"go.uber.org/zap"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/filestore"
	"github.com/lockfx/lockfx/fxlock"
)

func main() {
	ctx, forget := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, forget) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the program; the end of ctx stops it in order. It returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("fxapp", flag.ContinueOnError)
	flags.SetOutput(stderr)
	storeFlag := flags.String("store", "memory", "where the lease is: memory, or dir:PATH, a directory that processes share")
	dir := flags.String("out", "", "the directory of the report; a new temporary one by default")
	address := flags.String("serve", "", "be one replica with an HTTP server on this address, such as 127.0.0.1:8080")
	lead := flags.Bool("lead", false, "campaign for the lock instead of asking for it")
	verbose := flags.Bool("v", false, "log what fx and the locks do, on stderr")
	if flags.Parse(args) != nil || flags.NArg() > 0 {
		return 2
	}

	out := &console{w: stdout}
	w := world{out: out, logger: zap.NewNop(), name: fmt.Sprintf("replica-%d", os.Getpid())}
	if *verbose {
		w.logger = zap.Must(zap.NewDevelopment())
	}
	path, isDir := strings.CutPrefix(*storeFlag, "dir:")
	err := w.open(*storeFlag, path, isDir, *dir)
	if err == nil {
		switch {
		case *address != "":
			err = w.serve(ctx, *address)
		case isDir && *lead:
			err = w.campaign(ctx)
		case isDir:
			err = w.compete(ctx)
		case *lead:
			err = w.tellLeading(ctx)
		default:
			err = w.tellStory(ctx)
		}
	}
	if err != nil && ctx.Err() == nil {
		_, _ = fmt.Fprintln(stderr, "fxapp:", err)
		return 1
	}
	w.tellLease()
	return 0
}

// open chooses the store and the report.
func (w *world) open(store, path string, isDir bool, dir string) (err error) {
	switch {
	case isDir:
		w.store, err = filestore.New(path)
	case store == "memory":
		w.store = fxlock.NewMemoryStore()
	default:
		err = fmt.Errorf("-store %s: must be memory or dir:PATH", store)
	}
	if err == nil && dir == "" {
		dir, err = os.MkdirTemp("", "fxapp-")
	}
	if err == nil {
		w.sink, err = openSink(filepath.Join(dir, "report.txt"))
	}
	return err
}

// tellLease says what the store knows of the lease in the end, and closes the store.
func (w *world) tellLease() {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	lease, err := w.store.(lockfx.Inspector).Inspect(ctx, lockName)
	switch {
	case err != nil:
		w.out.say("the store", "does not answer: %v", err)
	case lease.Token.Valid():
		w.out.say("the store", "says that %s holds the lease, with token %d", lease.Label, lease.Token)
	default:
		w.out.say("the store", "says that the lease is free")
	}
	if closer, ok := w.store.(lockfx.Closer); ok {
		_ = closer.Close(ctx) // nothing is held that a failure could leave behind
	}
}
