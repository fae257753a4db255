package server

import (
	"errors"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
)

// prepare makes the server die with this process, and run as name if this process
// is root; the folder then belongs to that user.
func prepare(cmd *exec.Cmd, name, dir string) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if name == "" || os.Geteuid() != 0 {
		return nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		return err
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return err
	}
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, int(uid), int(gid)))
	})
}

// run starts the process and waits for it on one thread: the death signal comes
// when the thread that started the process ends, not the whole program.
func (p *Process) run() error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // how it ended is in its output
			close(p.exited)
		}
	}()
	return <-started
}

func (p *Process) terminate() error { return p.cmd.Process.Signal(syscall.SIGTERM) }

func (p *Process) freeze() error { return p.cmd.Process.Signal(syscall.SIGSTOP) }

func (p *Process) thaw() { _ = p.cmd.Process.Signal(syscall.SIGCONT) } // it may have been killed
