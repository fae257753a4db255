package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// readyWithin bounds the start of a server, stopWithin its orderly stop.
const (
	readyWithin = 30 * time.Second
	stopWithin  = 10 * time.Second
)

// Command says how a server is started.
type Command struct {
	Path string   // of the program; see [Find]
	Args []string // to the program
	Dir  string   // its working folder, which also takes its output; see [TempDir]
	// User is who the server runs as if this process is root: some servers refuse
	// root. Empty: the present user.
	User string
	// Ready returns nil once the server answers. It is called again and again, with
	// a context that ends when the server does or when it takes too long.
	Ready func(ctx context.Context) error
}

// Process is a running server. Its methods are safe for concurrent use.
type Process struct {
	cmd    *exec.Cmd
	log    string
	exited chan struct{} // closed when the process has ended
	once   sync.Once
}

// Start starts a server and returns once it is ready. An error carries the last of
// what the server wrote, and leaves no process behind.
func Start(ctx context.Context, c Command) (*Process, error) {
	log, err := os.OpenFile(filepath.Join(c.Dir, "output.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() //nolint:errcheck // the server has its own handle
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.Dir, log, log
	if err := prepare(cmd, c.User, c.Dir); err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Path, err)
	}
	p := &Process{cmd: cmd, log: log.Name(), exited: make(chan struct{})}
	if err := p.run(); err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Path, err)
	}
	if err := p.ready(ctx, c.Ready); err != nil {
		p.Kill()
		return nil, fmt.Errorf("start %s: %w\n%s", c.Path, err, p.tail())
	}
	return p, nil
}

func (p *Process) ready(ctx context.Context, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	go func() {
		select {
		case <-p.exited:
			cancel()
		case <-ctx.Done():
		}
	}()
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.exited:
			return errors.New("the server ended before it was ready")
		case <-ctx.Done():
			return fmt.Errorf("not ready: %w", err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// Pid returns the id of the process.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Exited is closed once the server has ended, for whatever reason.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Stop asks the server to end, kills it if it takes too long, and waits for its
// end. It may be called more than once, and after the server has ended.
func (p *Process) Stop() {
	p.once.Do(func() {
		_ = p.terminate() // it may have ended by itself
		select {
		case <-p.exited:
		case <-time.After(stopWithin):
			_ = p.cmd.Process.Kill()
		}
	})
	<-p.exited
}

// Kill ends the server at once, as a loss of power does, and waits for its end.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // it may have ended by itself
	<-p.exited
}

// Pause freezes the server: connections stay open and nobody answers. resume may
// be called more than once, and must be called.
func (p *Process) Pause() (resume func(), err error) {
	if err := p.freeze(); err != nil {
		return nil, fmt.Errorf("pause %s: %w", p.cmd.Path, err)
	}
	return sync.OnceFunc(p.thaw), nil
}

// tail returns the last of what the server wrote.
func (p *Process) tail() string {
	const most = 2000
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-most):])
}
