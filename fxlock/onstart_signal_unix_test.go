//go:build unix

package fxlock_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"go.uber.org/fx"

	"github.com/lockfx/lockfx/fxlock"
)

// fx listens for signals once an application has started: one that comes in a job of the
// start ends the process at once, and the lease is left to expire.
func TestOnStart_ASignalInTheJobEndsTheProcess(t *testing.T) {
	const child = "LOCKFX_TEST_SIGNAL_IN_START"
	if os.Getenv(child) != "" {
		fx.New(fx.NopLogger, fxlock.Module(key, memory(), fxlock.OnStart[Migrated](func() {
			fmt.Println("at work")
			select {}
		}))).Run()
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), child+"=1")
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "at work\n" {
		t.Errorf("the job says %q, %v", line, err)
	}
	must(t, cmd.Process.Signal(syscall.SIGTERM))
	_ = cmd.Wait()
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != syscall.SIGTERM {
		t.Errorf("the process ended with %v", cmd.ProcessState)
	}
}
