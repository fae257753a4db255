package main

import (
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"
)

// member is a replica in a process of its own: this program, started again.
type member struct {
	name  string
	cmd   *exec.Cmd
	stdin io.Closer     // its end stops the process in order, also if ours dies
	gone  chan struct{} // closed when the process has ended and all it said was heard

	killed bool // by us
	spoke  bool // read once gone is closed
}

// startMember starts program with args. What it prints goes to out, and each line to said.
func startMember(program string, args []string, out *console, stderr io.Writer, said func(*member, []byte)) (*member, error) {
	m := &member{cmd: exec.Command(program, append(args, "-eof")...), gone: make(chan struct{})}
	var err error
	if m.stdin, err = m.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	m.cmd.Stdout = &lines{each: func(line []byte) {
		m.spoke = true
		out.print(string(line))
		said(m, line)
	}}
	m.cmd.Stderr = stderr
	if err := m.cmd.Start(); err != nil {
		return nil, err
	}
	m.name = fmt.Sprintf("replica-%d", m.cmd.Process.Pid)
	go func() {
		defer close(m.gone)
		_ = m.cmd.Wait() // its exit code is in ProcessState
	}()
	return m, nil
}

// kill ends the process without a word to it.
func (m *member) kill() error {
	m.killed = true
	if err := m.cmd.Process.Kill(); err != nil {
		return err
	}
	<-m.gone
	return nil
}

// stop tells the process to stop, once or more often.
func (m *member) stop() { _ = m.stdin.Close() }

// memberPatience is longer than a process takes to stop.
const memberPatience = 2 * stopTimeout

// stopped waits until the process has stopped, and returns an error if it did so out
// of order.
func (m *member) stopped() error {
	timer := time.NewTimer(memberPatience)
	defer timer.Stop()
	select {
	case <-m.gone:
	case <-timer.C:
		_ = m.kill()
		return fmt.Errorf("%s did not stop within %v", m.name, memberPatience)
	}
	state := m.cmd.ProcessState
	switch {
	case state.Success():
		return nil
	case state.ExitCode() < 0 && !m.spoke:
		return nil // a terminal's Ctrl-C hit it before it was up, so before it did anything
	}
	return fmt.Errorf("%s: %v", m.name, state)
}

// lines cuts what is written to it into lines. It is safe for concurrent use.
type lines struct {
	each func(line []byte) // with its end

	mu   sync.Mutex // guards what follows
	rest []byte
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, p...)
	for {
		end := bytes.IndexByte(l.rest, '\n') + 1
		if end == 0 {
			return len(p), nil
		}
		l.each(l.rest[:end])
		l.rest = l.rest[end:]
	}
}
