//go:build unix

package main

import (
	"bufio"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lockfx/lockfx/filestore"
)

var leadLandmarks = []string{
	`Three processes, one leader. Its lease, in .*, lasts 2s`,
	`(?P<first>replica-\d+) LEADS, with fencing token (?P<token1>\d+)`,
	`1\. The leader is killed`,
	`${first} IS DEAD`,
	`(?P<second>replica-\d+) LEADS, with fencing token (?P<token2>\d+)`,
	`${second} took over (?P<takeover>[\d.]+m?s) after that`,
	`2\. Its successor is stopped`,
	`${second} IS TOLD TO STOP`,
	`(?P<third>replica-\d+) LEADS, with fencing token (?P<token3>\d+)`,
	`${third} took over (?P<handoff>[\d.]+m?s) after that`,
	`3\. The last one stops`,
	`${third} has ended its term and released`,
	`the store  says that the lease is free`,
}

// The program as three processes and the one that tells of them.
func TestLeading(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), buildProgram(t), "-lead", "-out", dir)
	begun := time.Now()
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if took := time.Since(begun); took > time.Minute { // twelve seconds, where nobody else computes
		t.Errorf("it took %v", took)
	}
	found, err := follow(string(text), leadLandmarks)
	if err != nil {
		t.Fatal(err)
	}
	if found["first"] == found["second"] || found["second"] == found["third"] || found["first"] == found["third"] {
		t.Errorf("not three leaders: %v", found)
	}
	if !strings.Contains(string(text), found["second"]+" has ended its term and released") {
		t.Errorf("who was stopped did not release:\n%s", text)
	}
	if strings.Contains(string(text), found["first"]+" has ended") {
		t.Errorf("who was killed had time for a word:\n%s", text)
	}
	takeover, err := time.ParseDuration(found["takeover"])
	if err != nil || takeover < leadTTL/2 {
		t.Errorf("a lease of %v that nobody gave back was taken over after %v (%v)", leadTTL, takeover, err)
	}
	if report := readFile(t, filepath.Join(dir, "report.txt")); !strings.HasPrefix(report, found["third"]+" leads with token "+found["token3"]) {
		t.Errorf("the report is %q", report)
	}
	wantFreeAtLast(t, dir)
}

// A signal at any moment ends all four processes, and leaves the lease free, but for
// that of a leader who was killed.
func TestLeadingInterrupted(t *testing.T) {
	program := buildProgram(t)
	for _, tt := range []struct {
		name, until string
		signal      syscall.Signal
		group       bool // as a terminal sends it, to all processes
	}{
		{"at the beginning", `stands by`, syscall.SIGINT, false},
		{"while one leads", `LEADS`, syscall.SIGTERM, false},
		{"by a terminal", `LEADS`, syscall.SIGINT, true},
		{"by a terminal before all are up", `Three processes`, syscall.SIGINT, true},
		{"during a hand-off", `IS TOLD TO STOP`, syscall.SIGINT, false},
		{"after a kill", `IS DEAD`, syscall.SIGINT, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			cmd := exec.CommandContext(t.Context(), program, "-lead", "-out", dir)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			text := untilLine(t, cmd, tt.until, func() {
				to := cmd.Process.Pid
				if tt.group {
					to = -to
				}
				if err := syscall.Kill(to, tt.signal); err != nil {
					t.Error(err)
				}
			})
			if code := cmd.ProcessState.ExitCode(); code != exitInterrupted {
				t.Errorf("exit code %d", code)
			}
			if !strings.Contains(text, "Interrupted: everything stops") {
				t.Errorf("it did not say that it was interrupted:\n%s", text)
			}
			if free := strings.Contains(text, "says that the lease is free"); free != (tt.until != `IS DEAD`) {
				t.Errorf("the lease is free: %v\n%s", free, text)
			}
			wantFreeAtLast(t, dir)
		})
	}
}

// When the process that tells the story dies, the others do not live on.
func TestNobodySurvivesTheStory(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), buildProgram(t), "-lead", "-out", dir)
	untilLine(t, cmd, `LEADS`, func() { _ = cmd.Process.Kill() })
	wantFreeAtLast(t, dir)
}

// untilLine runs cmd, calls then at the first line that matches, and returns all that
// was printed. It waits until all processes have ended, since they share its standard
// error; nothing must be said there.
func untilLine(t *testing.T, cmd *exec.Cmd, pattern string, then func()) string {
	t.Helper()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var text, stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		text.WriteString(lines.Text() + "\n")
		if then != nil && regexp.MustCompile(pattern).MatchString(lines.Text()) {
			then()
			then = nil
		}
	}
	_ = cmd.Wait() // the exit code says it all
	if stderr.Len() > 0 {
		t.Errorf("on standard error: %s", &stderr)
	}
	if then != nil {
		t.Errorf("%q was never said:\n%s", pattern, text.String())
	}
	return text.String()
}

// wantFreeAtLast waits until nobody holds the lease in dir any more, and fails if a
// process renews it for longer than the lease of one who was killed lasts.
func wantFreeAtLast(t *testing.T, dir string) {
	t.Helper()
	store, err := filestore.New(filepath.Join(dir, "locks"))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		lease, err := store.Inspect(t.Context(), lockName)
		if err != nil {
			t.Fatal(err)
		}
		if lease.Token == 0 {
			return
		}
		time.Sleep(lease.TimeLeft + 10*time.Millisecond)
	}
	t.Error("somebody still renews the lease")
}
