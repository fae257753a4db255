//go:build unix

package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// process is the program in a process of its own, over a directory of leases.
type process struct {
	t     *testing.T
	name  string
	cmd   *exec.Cmd
	lines *bufio.Scanner // of what it prints
	heard strings.Builder
}

func startProcess(t *testing.T, program, dir, pace string) *process {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, "-store", "dir:"+filepath.Join(dir, "locks"), "-out", dir, "-pace", pace)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, name: fmt.Sprintf("replica-%d", cmd.Process.Pid), cmd: cmd, lines: bufio.NewScanner(stdout)}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return p
}

// until reads what the process prints, up to a line with text.
func (p *process) until(text string) {
	p.t.Helper()
	for p.lines.Scan() {
		p.heard.WriteString(p.lines.Text() + "\n")
		if strings.Contains(p.lines.Text(), text) {
			return
		}
	}
	p.t.Fatalf("%s never said %q:\n%s", p.name, text, p.heard.String())
}

// Two processes share a directory. One refuses the other; when it is killed in the
// middle of its report, the other goes on with a greater token.
func TestProcessesCompete(t *testing.T) {
	program, dir := buildProgram(t), t.TempDir()
	first := startProcess(t, program, dir, "1m")
	first.until("holds the lease")
	second := startProcess(t, program, dir, "0")
	second.until("is refused: " + first.name + " holds the lease")
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.cmd.Wait() // it was killed
	second.until("has written the report")
	second.until("has written the report")
	if err := second.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	second.until("the store  says that the lease is free")
	if err := second.cmd.Wait(); err != nil {
		t.Error(err)
	}
	text := first.heard.String() + second.heard.String()
	if err := inOrder(text); err != nil {
		t.Errorf("%v:\n%s", err, text)
	}
}
