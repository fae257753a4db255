package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfx/lockfx"
)

// storyLandmarks are lines of the story in their order. A group that is named again
// must match the same text.
var storyLandmarks = []string{
	`1\. All want to write the report`,
	`(?P<winner>replica-\d)  holds the lease, with fencing token (?P<token1>\d+)`,
	`${winner}  reads the log .* 25%`,
	`${winner}  reads the log .* 75%`,
	`${winner}  has written the report with token ${token1}`,
	`${winner}  closes the log`,
	`${winner}  has released its lease`,
	`${winner}  is done: 3988 requests; 12 of 4000 lines are malformed`,
	`2\. A holder is paused past its lease`,
	`replica-1  holds the lease, with fencing token (?P<stale>\d+)`,
	`replica-1  IS PAUSED`,
	`replica-2  is refused: replica-1 holds the lease, for at most 1\.\d+s`,
	`replica-2  holds the lease, with fencing token (?P<fresh>\d+)`,
	`replica-2  has written the report with token ${fresh}`,
	`replica-2  has released its lease`,
	`replica-1  GOES ON`,
	`replica-1  IS REFUSED: .*stale fencing token: token ${stale} is smaller than ${fresh}`,
	`the report is still the one with token ${fresh}`,
	`3\. A replica is stopped in the middle`,
	`replica-3  holds the lease`,
	`replica-3  IS TOLD TO STOP`,
	`replica-3  closes the log`,
	`replica-3  has released its lease`,
	`replica-3  has disposed of its lock`,
	`replica-3  has stopped`,
	`replica-3  had to end its report: .*lock is disposed`,
	`4\. The others stop`,
	`replica-2  has disposed of its lock`,
	`replica-2  has stopped`,
	`replica-1  has disposed of its lock`,
	`replica-1  has stopped`,
	`the store  says that the lease is free`,
}

// follow returns an error that names the first landmark that text does not reach,
// or else what the named groups matched.
func follow(text string, landmarks []string) (map[string]string, error) {
	found := map[string]string{}
	for i, pattern := range landmarks {
		for name, value := range found {
			pattern = strings.ReplaceAll(pattern, "${"+name+"}", regexp.QuoteMeta(value))
		}
		re := regexp.MustCompile(pattern)
		m := re.FindStringSubmatchIndex(text)
		if m == nil {
			return nil, fmt.Errorf("landmark %d, %s, is missing in the rest:\n%s", i, pattern, text)
		}
		for group, name := range re.SubexpNames() {
			if name != "" {
				found[name] = text[m[2*group]:m[2*group+1]]
			}
		}
		text = text[m[1]:]
	}
	return found, nil
}

func TestStory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, begun := t.TempDir(), time.Now()
		got := runProgram(t.Context(), t, memory(), "-out", dir)
		if got.code != exitOK || got.stderr != "" {
			t.Errorf("exit code %d, stderr %q", got.code, got.stderr)
		}
		found, err := follow(got.stdout, storyLandmarks)
		if err != nil {
			t.Fatal(err)
		}
		race, _, _ := strings.Cut(got.stdout, "\n2. ")
		if n := strings.Count(race, "is refused: "+found["winner"]+" holds the lease, for at most 1.5s"); n != 2 {
			t.Errorf("%d of the others were told that %s is the holder:\n%s", n, found["winner"], race)
		}
		if took := time.Since(begun); took < 4*time.Second || took > 8*time.Second {
			t.Errorf("the story takes %v", took)
		}
		if strings.Count(got.stdout, "IS REFUSED") != 1 || strings.Count(got.stdout, "replica-1  has lost its lease: expired") != 1 {
			t.Errorf("not one refused write and one loss:\n%s", got.stdout)
		}
		if strings.Contains(got.stdout, "replica-2  has lost") {
			t.Errorf("a lease was lost although nobody was paused:\n%s", got.stdout)
		}
		path := filepath.Join(dir, "report.txt")
		if text := readFile(t, path); text != readFile(t, "testdata/report.golden") {
			t.Errorf("the report is\n%s", text)
		}
		if mark := readFile(t, path+".fence"); mark != found["fresh"]+"\n" {
			t.Errorf("the mark is %q, the last token written with %s", mark, found["fresh"])
		}
		if !strings.Contains(got.stdout, path) {
			t.Errorf("the story does not say where the report is:\n%s", got.stdout)
		}
	})
}

// A tour guide who skips a place, or goes there too early, is found out.
func TestFollowNoticesWhatIsMissing(t *testing.T) {
	landmarks := []string{`(?P<who>r-\d) wins`, `${who} writes`, `free`}
	if _, err := follow("r-1 wins\nr-1 writes\nfree\n", landmarks); err != nil {
		t.Error(err)
	}
	for _, text := range []string{"r-1 wins\nr-2 writes\nfree\n", "r-1 writes\nr-1 wins\nfree\n", "r-1 wins\nfree\n", "r-1 wins\nr-1 writes\n"} {
		if _, err := follow(text, landmarks); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

// The story checks itself: a sink that lets a late write pass is a fault.
func TestCheckRefused(t *testing.T) {
	dir := t.TempDir()
	path, err := reportPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	s := story{world: world{reportFile: path, out: &console{w: &out}}}
	stale := fmt.Errorf("write: %w", lockfx.ErrStaleToken)
	if err := s.checkRefused(stale, 0); err != nil {
		t.Error(err)
	}
	if out.String() == "" {
		t.Error("nothing was told")
	}
	for name, err := range map[string]error{
		"a write that passed":        s.checkRefused(nil, 0),
		"a write that failed anyhow": s.checkRefused(errors.New("disk full"), 0),
		"a report that changed":      s.checkRefused(stale, 7),
	} {
		if err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

// Somebody else, say another process, holds the lease: a story that can't be told is
// a fault.
func TestStoryThatNobodyWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory()
		grant, err := store.Acquire(lockfx.WithLabel(t.Context(), "a stranger"), lockName, time.Hour)
		if err != nil || !grant.OK {
			t.Fatal(grant, err)
		}
		var stdout, stderr strings.Builder
		code := runOver(t.Context(), store, []string{"-out", t.TempDir()}, &stdout, &stderr)
		if code != exitFault || stderr.String() != "fxapp: nobody wrote the report\n" {
			t.Errorf("exit code %d, stderr %q", code, &stderr)
		}
		if _, err := follow(stdout.String(), []string{
			"is refused: a stranger holds the lease, for at most 1h0m0s", "A fault: everything stops",
			"replica-1  has stopped", "the store  says that a stranger still holds the lease",
		}); err != nil {
			t.Error(err)
		}
	})
}

const ownLog = `192.0.2.7 - - [14/Mar/2026:09:26:53 +0100] "GET / HTTP/1.1" 200 5316
what is this
192.0.2.8 - - [14/Mar/2026:09:26:54 +0100] "GET /missing HTTP/1.1" 404 -
192.0.2.9 - - [14/Mar/2026:09:26:54 +0100] "GET /cut

192.0.2.7 - - [14/Mar/2026:09:26:55 +0100] "GET / HTTP/1.1" 2x0 5316
`

// A log of one's own, twice into one directory: the tokens of the second run are
// greater, so its reports are taken.
func TestStoryOverAnOwnLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, log := filepath.Join(t.TempDir(), "made", "for", "it"), writeFile(t, ownLog)
		mark := 0
		for range 2 {
			got := runProgram(t.Context(), t, memory(), "-log", log, "-out", dir)
			if got.code != exitOK || got.stderr != "" {
				t.Fatalf("exit code %d, stderr %q", got.code, got.stderr)
			}
			for _, want := range []string{
				"is done: 2 requests; 4 of 6 lines are malformed",
				"the first of these is line 2: no time in brackets",
			} {
				if !strings.Contains(got.stdout, want) {
					t.Errorf("%q is missing in\n%s", want, got.stdout)
				}
			}
			before := mark
			mark, _ = strconv.Atoi(strings.TrimSpace(readFile(t, filepath.Join(dir, "report.txt.fence"))))
			if mark <= before {
				t.Errorf("mark %d after %d", mark, before)
			}
		}
		if text := readFile(t, filepath.Join(dir, "report.txt")); !strings.Contains(text, "malformed    4 of 6 lines") {
			t.Errorf("the report is\n%s", text)
		}
	})
}

func TestStoryOverPoorLogs(t *testing.T) {
	for name, log := range map[string]string{
		"empty":        "",
		"one byte":     "x",
		"nothing good": strings.Repeat("nothing\n", 1000),
		"binary":       strings.Repeat("\x00\xff\n\x1b", 5000),
		"one line":     strings.Repeat("long", 50_000),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := runProgram(t.Context(), t, memory(), "-log", writeFile(t, log), "-out", t.TempDir())
				if got.code != exitOK || got.stderr != "" || !strings.Contains(got.stdout, "is done: 0 requests") {
					t.Errorf("exit code %d, stderr %q, stdout\n%s", got.code, got.stderr, got.stdout)
				}
				if strings.ContainsAny(got.stdout, "\x00\x1b") {
					t.Errorf("the log reached the terminal: %q", got.stdout)
				}
			})
		})
	}
}

func TestVerboseLogsOnStderr(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := runProgram(t.Context(), t, memory(), "-v", "-out", t.TempDir())
		if got.code != exitOK {
			t.Errorf("exit code %d", got.code)
		}
		for _, want := range []string{"replica-2.fxlock\tacquired", `"lock": "nightly"`, "\tinvoking", "\tstarted"} {
			if !strings.Contains(got.stderr, want) {
				t.Errorf("%q is missing in\n%s", want, got.stderr)
			}
		}
		if _, err := follow(got.stdout, storyLandmarks); err != nil {
			t.Error(err)
		}
	})
}
