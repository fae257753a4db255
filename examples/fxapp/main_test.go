package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/lockfx/lockfx"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tell runs the program in virtual time and returns its exit code and what it printed.
func tell(t *testing.T, after time.Duration, args ...string) (code int, told string) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), after)
		defer cancel()
		var out, faults bytes.Buffer
		code = run(ctx, append(args, "-out", t.TempDir()), &out, &faults)
		told = out.String() + faults.String()
	})
	return code, told
}

// inOrder checks that the lines are in text, in this order. An X stands for anything.
func inOrder(t *testing.T, text string, lines ...string) {
	t.Helper()
	rest := text
	for _, line := range lines {
		found := regexp.MustCompile(strings.ReplaceAll(regexp.QuoteMeta(line), "X", ".*?")).FindStringIndex(rest)
		if found == nil {
			t.Fatalf("%q does not follow in:\n%s", line, text)
		}
		rest = rest[found[1]:]
	}
}

const free = "the store  says that the lease is free"

func TestStory(t *testing.T) {
	code, told := tell(t, time.Minute)
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	inOrder(t, told, "1. All want to write", "holds the lease, with fencing token", "has written the report with token",
		"2. A holder is paused", "replica-1  IS PAUSED", "replica-2  is refused: replica-1 holds the lease", "replica-2  has written the report",
		"replica-1  GOES ON", "replica-1  IS REFUSED: write report.txt: stale fencing token",
		"3. A replica is stopped", "replica-3  has page 1 of 4", "replica-3  IS TOLD TO STOP", "replica-3  has released its lease",
		"replica-3  had to end its report: page 2: lock is disposed", "4. The others stop", free)
	if n := strings.Count(told, "has written the report"); n != 2 {
		t.Errorf("the report was written %d times:\n%s", n, told)
	}
}

func TestLeading(t *testing.T) {
	code, told := tell(t, time.Minute, "-lead")
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	inOrder(t, told, "LEADS", "1. The leader is paused", "IS PAUSED", "LEADS", "GOES ON", "IS REFUSED",
		"2. Its successor is stopped", "has released its lease", "LEADS", "leads, 0s after that began", "3. The others stop", free)
	if n := strings.Count(told, "LEADS"); n < 3 {
		t.Errorf("%d leaders:\n%s", n, told)
	}
}

// A signal at any moment ends the story in order.
func TestStoryCutShort(t *testing.T) {
	for _, args := range [][]string{nil, {"-lead"}} {
		for after := 100 * time.Millisecond; after < 6*time.Second; after += 911 * time.Millisecond {
			code, told := tell(t, after, args...)
			if code != 0 || !strings.HasSuffix(told, free+"\n") {
				t.Errorf("%v, cut short after %v: exit code %d:\n%s", args, after, code, told)
			}
		}
	}
}

func TestWrongFlags(t *testing.T) {
	for _, args := range [][]string{{"-store", "redis"}, {"-nope"}, {"report"}} {
		if code := run(t.Context(), args, io.Discard, io.Discard); code == 0 {
			t.Errorf("%v: exit code 0", args)
		}
	}
}

// One request at a time writes; the server stops before the report and the lock.
func TestServe(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	r, w := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"-serve", "127.0.0.1:0", "-out", t.TempDir()}, w, w)
		_ = w.Close()
	}()
	var told lines
	go told.read(r)
	url := told.wait(t, `listens on (\S+)`)
	defer http.DefaultClient.CloseIdleConnections()
	post := func() (int, string) {
		answer, err := http.Post(url+"/report", "", nil)
		if err != nil {
			return 0, err.Error()
		}
		defer answer.Body.Close() //nolint:errcheck // read to its end
		text, _ := io.ReadAll(answer.Body)
		return answer.StatusCode, string(text)
	}
	first := make(chan int, 1)
	go func() { code, _ := post(); first <- code }()
	told.wait(t, "has page 1")
	if code, text := post(); code != http.StatusConflict || !strings.Contains(text, "in use by another caller") {
		t.Errorf("a second request gets %d: %s", code, text)
	}
	if code := <-first; code != http.StatusOK {
		t.Errorf("the first request gets %d", code)
	}
	stop()
	if code := <-ended; code != 0 {
		t.Errorf("exit code %d", code)
	}
	told.wait(t, free)
}

// The token decides, whoever writes and in whatever order.
func TestSinkRefusesAStaleToken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.txt")
	to, err := openSink(path)
	if err != nil {
		t.Fatal(err)
	}
	var greatest lockfx.Token
	for _, fence := range []lockfx.Token{3, 1, 3, 0, 7, 5, 7, -1, 8} {
		err := to.Write(t.Context(), fence, "text\n")
		if stale := fence < max(greatest, 1); stale != errors.Is(err, lockfx.ErrStaleToken) || !stale && err != nil {
			t.Errorf("token %d after %d: %v", fence, greatest, err)
		}
		greatest = max(greatest, fence)
		if text, _ := os.ReadFile(path); string(text) != greatest.String()+"\ntext\n" {
			t.Errorf("after token %d the report is %q", fence, text)
		}
	}
}
