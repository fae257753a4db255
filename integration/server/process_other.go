//go:build !linux

package server

import (
	"errors"
	"os"
	"os/exec"
)

func prepare(*exec.Cmd, string, string) error { return nil }

func (p *Process) run() error {
	if err := p.cmd.Start(); err != nil {
		return err
	}
	go func() {
		_ = p.cmd.Wait() // how it ended is in its output
		close(p.exited)
	}()
	return nil
}

func (p *Process) terminate() error { return p.cmd.Process.Signal(os.Interrupt) }

func (p *Process) freeze() error { return errors.ErrUnsupported }

func (p *Process) thaw() {}
