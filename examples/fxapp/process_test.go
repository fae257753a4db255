package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// lines collects what a program prints, and wakes those who wait for a line.
type lines struct {
	mu   sync.Mutex // guards what follows
	text strings.Builder
	more chan struct{}
}

func (l *lines) read(r io.Reader) {
	for lines := bufio.NewScanner(r); lines.Scan(); {
		l.mu.Lock()
		l.text.WriteString(lines.Text() + "\n")
		if l.more != nil {
			close(l.more)
			l.more = nil
		}
		l.mu.Unlock()
	}
}

// wait returns what pattern, or its first group, matches, as soon as it does.
func (l *lines) wait(t *testing.T, pattern string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		l.mu.Lock()
		text := l.text.String()
		if l.more == nil {
			l.more = make(chan struct{})
		}
		more := l.more
		l.mu.Unlock()
		if found := regexp.MustCompile(pattern).FindStringSubmatch(text); found != nil {
			return found[len(found)-1]
		}
		select {
		case <-more:
		case <-ctx.Done():
			t.Fatalf("%q did not come in:\n%s", pattern, text)
		}
	}
}

// Two processes share a directory of leases. One is killed while it holds the lease, and
// nothing gives it back: the other takes over when it has run out.
func TestProcesses_TakeOverFromOneThatWasKilled(t *testing.T) {
	for _, mode := range [][]string{nil, {"-lead"}} {
		dir := t.TempDir()
		program := filepath.Join(dir, "fxapp.exe")
		if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		start := func() (*exec.Cmd, *lines) {
			cmd := exec.Command(program, append(mode, "-store", "dir:"+filepath.Join(dir, "locks"), "-out", dir)...)
			out, err := cmd.StdoutPipe()
			if err == nil {
				err = cmd.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			told := new(lines)
			go told.read(out)
			return cmd, told
		}
		first, told := start()
		told.wait(t, "holds the lease")
		second, heard := start()
		heard.wait(t, "is refused")
		if err := first.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = first.Wait() // killed
		heard.wait(t, "has written the report")
		if err := second.Process.Signal(os.Interrupt); err != nil { // Windows has no signal that asks
			t.Logf("it is killed: %v", err)
			_ = second.Process.Kill()
			_ = second.Wait()
			continue
		}
		if err := second.Wait(); err != nil {
			t.Errorf("it did not stop in order: %v", err)
		}
		heard.wait(t, "the lease is free")
	}
}
