//go:build unix

package filestore_test

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/filestore"
)

// shown returns the commands of the package's documentation and what each prints.
func shown(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	commands := map[string]string{}
	var command string
	for line := range strings.Lines(string(text)) {
		line, indented := strings.CutPrefix(line, "//\t")
		if next, ok := strings.CutPrefix(line, "$ "); ok && indented {
			command = strings.TrimSpace(next)
			commands[command] = ""
		} else if indented && command != "" {
			commands[command] += line
		} else {
			command = ""
		}
	}
	return commands
}

// inDir runs a command, with a group for "jobs" that need not have a name here.
func inDir(dir, command string) ([]byte, error) {
	group := strconv.Itoa(crew)
	if os.Geteuid() != root { // only root may give a file to any group
		group = strconv.Itoa(os.Getgid())
	}
	cmd := exec.Command("sh", "-c", strings.ReplaceAll(command, "jobs", group))
	cmd.Dir = dir
	return cmd.CombinedOutput()
}

// The lease that the documentation shows is the one that it is about.
func TestTheDocumentedCommandsPrintWhatIsDocumented(t *testing.T) {
	now := time.Date(2027, 1, 2, 6, 14, 5, 3_907_000, time.UTC)
	dir := newDir(t)
	s := open(t, dir, filestore.WithNow(func() time.Time { return now }))
	grant(t, s, "nightly", time.Minute)
	release(t, s, "weekly", grant(t, s, "weekly", time.Hour), true)
	now = now.Add(30*time.Minute + 304*time.Microsecond)
	holder := lockfx.WithLabel(t.Context(), "web-1/4711/reports")
	if g, err := s.Acquire(holder, "nightly", 30*time.Second); err != nil || !g.OK {
		t.Fatal(g, err)
	}
	commands := shown(t)
	if len(commands) != 3 {
		t.Errorf("%d commands are documented: %v", len(commands), commands)
	}
	for command, want := range commands {
		out, err := inDir(dir, command)
		if got := regexp.MustCompile(`"sha256": "\w+"`).ReplaceAllString(string(out), `"sha256": "…"`); err != nil || got != want {
			t.Errorf("%s: %v\n%s\nwant\n%s", command, err, got, want)
		}
	}
}

// A service that ran alone goes on beside others once its directory is shared.
func TestADirectoryInUseCanBeShared(t *testing.T) {
	dir := newDir(t)
	give(t, dir, service.uid, service.gid, 0o700)
	as(t, service, "use all keys", dir)
	as(t, service, "take over", dir)
	for command := range shown(t) {
		if strings.HasPrefix(command, "chgrp") {
			if out, err := inDir(dir, command); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		}
	}
	for _, u := range []user{colleague, service, byRoot77, colleague} {
		as(t, u, "take over", dir)
		as(t, u, "use all keys", dir)
	}
}
