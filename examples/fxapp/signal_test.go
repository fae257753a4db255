//go:build unix

package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func buildProgram(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "fxapp")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return program
}

// The built program ends in order on a signal, wherever the working directory is.
func TestSignals(t *testing.T) {
	program := buildProgram(t)
	for _, tt := range []struct {
		name   string
		args   []string
		until  string // the signal is sent once this was printed
		signal os.Signal
		code   int
		then   []string
	}{
		{
			"Ctrl-C while a replica reads",
			[]string{"-pace", "1m"},
			"holds the lease", os.Interrupt, exitInterrupted,
			[]string{"has released its lease", "Interrupted", "has stopped", "the lease is free"},
		},
		{
			"Ctrl-C while a holder is paused",
			[]string{"-pace", "0"},
			"IS PAUSED", os.Interrupt, exitInterrupted,
			[]string{"has released its lease", "Interrupted", "has stopped", "the lease is free"},
		},
		{
			"SIGTERM for a service",
			[]string{"-serve", "127.0.0.1:0"},
			"writes to", syscall.SIGTERM, exitOK,
			[]string{"stops", "has disposed of its lock", "the lease is free"},
		},
		{
			"Ctrl-C while a process competes",
			[]string{"-store", "dir:locks", "-pace", "1m"},
			"holds the lease", os.Interrupt, exitOK,
			[]string{"has released its lease", "has disposed of its lock", "has stopped", "the lease is free"},
		},
		{
			"SIGTERM for a service over a directory",
			[]string{"-store", "dir:locks", "-serve", "127.0.0.1:0"},
			"writes to", syscall.SIGTERM, exitOK,
			[]string{"stops", "has disposed of its lock", "the lease is free"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), program, append(tt.args, "-out", t.TempDir())...)
			cmd.Dir = t.TempDir()
			var stderr strings.Builder
			cmd.Stderr = &stderr
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var after strings.Builder
			sent := false
			for lines := bufio.NewScanner(stdout); lines.Scan(); {
				switch {
				case sent:
					after.WriteString(lines.Text() + "\n")
				case strings.Contains(lines.Text(), tt.until):
					sent = true
					if err := cmd.Process.Signal(tt.signal); err != nil {
						t.Error(err)
					}
				}
			}
			_ = cmd.Wait() // the exit code says it all
			if code := cmd.ProcessState.ExitCode(); !sent || code != tt.code || stderr.Len() > 0 {
				t.Errorf("signal sent: %v, exit code %d, stderr %q", sent, code, &stderr)
			}
			if _, err := follow(after.String(), tt.then); err != nil {
				t.Error(err)
			}
		})
	}
}
