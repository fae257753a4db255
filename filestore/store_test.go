package filestore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/filestore"
	"github.com/lockfx/lockfx/internal/storemodel"
)

func TestNewMakesTheDirectoryForThisUserAlone(t *testing.T) {
	dir := filepath.Join(newDir(t), "a", "b")
	open(t, dir)
	for _, path := range []string{dir, filepath.Dir(dir)} {
		info, err := os.Stat(path)
		if err != nil || info.Mode() != os.ModeDir|0o700 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	token := grant(t, open(t, dir), "nightly", time.Minute)
	release(t, open(t, dir), "nightly", token, true)
	for _, file := range filesIn(t, dir, "*") {
		if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: %v, %v", file, info.Mode(), err)
		}
	}
}

func TestNewTellsAllFaultsAtOnce(t *testing.T) {
	_, err := filestore.New("", filestore.WithPolling(0), filestore.WithPolling(-time.Second), nil, filestore.WithNow(nil))
	if !errors.Is(err, lockfx.ErrConfig) {
		t.Fatal(err)
	}
	for _, want := range []string{"path of the directory must not be empty", "filestore.WithPolling(0s): the interval must", "filestore.WithPolling(-1s)", "option 3 is nil"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q in it", err, want)
		}
	}
}

func TestNewRefusesWhatIsNoDirectory(t *testing.T) {
	dir := newDir(t)
	writeFile(t, dir, "file", nil)
	if _, err := filestore.New(filepath.Join(dir, "file")); err == nil || !strings.Contains(err.Error(), "not a directory") {
		t.Error(err)
	}
}

// A store keeps its directory though the process goes elsewhere.
func TestDirectoryIsFixedWhenTheStoreIsMade(t *testing.T) {
	dir := newDir(t)
	t.Chdir(filepath.Dir(dir))
	s := open(t, filepath.Base(dir))
	t.Chdir(newDir(t))
	grant(t, s, "nightly", time.Minute)
	if g, err := open(t, dir).Acquire(t.Context(), "nightly", time.Minute); err != nil || g.OK {
		t.Errorf("%+v, %v", g, err)
	}
}

func TestOptionsPrintThemselves(t *testing.T) {
	for want, opt := range map[string]filestore.Option{
		"filestore.WithNow(nil)":      filestore.WithNow(nil),
		"filestore.WithNow(func)":     filestore.WithNow(time.Now),
		"filestore.WithPolling(50ms)": filestore.WithPolling(50 * time.Millisecond),
	} {
		if got := fmt.Sprint(opt); got != want {
			t.Errorf("%s; want %s", got, want)
		}
	}
}

func TestErrorsNameTheCallAndAllItsFaults(t *testing.T) {
	s, _, _ := newStore(t)
	_, err := s.Acquire(t.Context(), "", 0)
	if err == nil || !strings.HasPrefix(err.Error(), "acquire: ") || !strings.Contains(err.Error(), "must not be empty") || !strings.Contains(err.Error(), "ttl 0s") {
		t.Errorf("%v", err)
	}
	if _, err := s.Renew(t.Context(), "nightly", 1, time.Microsecond); err == nil || err.Error() != `renew "nightly": invalid configuration: ttl 1µs is below the store's resolution of 1ms` {
		t.Errorf("%v", err)
	}
	errShutdown := errors.New("the application stops")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errShutdown)
	if _, err := s.Break(ctx, "nightly"); !errors.Is(err, context.Canceled) || !errors.Is(err, errShutdown) || !strings.HasPrefix(err.Error(), `break "nightly": `) {
		t.Errorf("%v", err)
	}
}

// The end of the caller's context is the reason, whatever else went wrong by then.
func TestTheEndOfTheContextComesBeforeAFailureOfTheDirectory(t *testing.T) {
	s, _, dir := newStore(t)
	errShutdown := errors.New("the application stops")
	ctx, cancel := context.WithCancelCause(t.Context())
	s.OnStep(func(step string, _ *os.File, _ []byte) {
		if step == "rename" {
			cancel(errShutdown)
			if err := os.RemoveAll(dir); err != nil {
				t.Error(err)
			}
		}
	})
	_, err := s.Acquire(ctx, "nightly", time.Minute)
	if !errors.Is(err, context.Canceled) || !errors.Is(err, errShutdown) || errors.Is(err, lockfx.ErrStore) || err.Error() != `acquire "nightly": context canceled: the application stops` {
		t.Errorf("%v", err)
	}
}

func TestLabelsAreForPeople(t *testing.T) {
	s, _, dir := newStore(t)
	for label, want := range map[string]string{
		"host/1/app":                "host/1/app",
		"<a>&\u2028\"\\\n":          "<a>&\u2028\"\\\n",
		"half a rune \xc3":          "half a rune ",
		strings.Repeat("é", 1000):   strings.Repeat("é", 512),
		strings.Repeat("\x01", 1e5): strings.Repeat("\x01", 1024),
	} {
		key := fmt.Sprintf("%.20q", label)
		g, err := s.Acquire(lockfx.WithLabel(t.Context(), label), key, time.Minute)
		if err != nil || !g.OK {
			t.Fatal(g, err)
		}
		inspect(t, s, key, lockfx.Lease{Token: g.Token, Label: want, TimeLeft: time.Minute})
	}
	if record := string(readFile(t, dir, filestore.LeaseName(`"host/1/app"`))); !strings.Contains(record, `"holder": "host/1/app"`) {
		t.Errorf("people can't read this:\n%s", record)
	}
}

// The longest record of all fits.
func TestLongestRecord(t *testing.T) {
	s, _, _ := newStore(t)
	key := strings.Repeat("\x01", lockfx.MaxKeyLen)
	g, err := s.Acquire(lockfx.WithLabel(t.Context(), strings.Repeat("\x01", 2000)), key, time.Minute)
	if err != nil || !g.OK {
		t.Fatal(g, err)
	}
	renew(t, s, key, g.Token, time.Minute, true)
}

// Whoever waits for a guard leaves at the very instant at which ctx ends, and leaves
// nothing behind.
func TestWaitForTheGuardEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := newDir(t)
		s, other := open(t, dir), open(t, dir)
		release, ok := other.TryGuard("nightly")
		if !ok {
			t.Fatal("the guard is not free")
		}
		for op, call := range calls(s, 1) {
			if op == "watch" || op == "inspect" {
				continue // they take no guard
			}
			start := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 12345*time.Microsecond)
			err := call(ctx, "nightly")
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "wait for guard-") {
				t.Errorf("%s: %v", op, err)
			}
			if waited := time.Since(start); waited != 12345*time.Microsecond {
				t.Errorf("%s: left after %v", op, waited)
			}
		}
		// Without a deadline it gives up by itself.
		for op, call := range calls(s, 1) {
			if op == "watch" || op == "inspect" {
				continue
			}
			start := time.Now()
			err := call(t.Context(), "nightly")
			if waited := time.Since(start); waited != 5*time.Second || !errors.Is(err, lockfx.ErrStore) || !strings.Contains(err.Error(), "wait for "+filestore.GuardNameOf("nightly")) {
				t.Errorf("%s: %v after %v", op, err, waited)
			}
		}
		// A goroutine of the same store waits its turn in front of the guard.
		first, cancelFirst := context.WithCancel(t.Context())
		done := make(chan error, 2)
		for _, ctx := range []context.Context{first, t.Context()} {
			go func() { _, err := s.Acquire(ctx, "nightly", time.Hour); done <- err }()
			synctest.Wait()
		}
		cancelFirst()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		release()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// With the guard of the mark taken, an acquisition ends with its context, and then writes
// nothing. Or it goes on without: the record has the token, and any later mark covers it.
func TestTheGuardOfTheMarkHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, dir := new(storemodel.Clock), newDir(t)
		s, other := open(t, dir, filestore.WithNow(c.Now)), open(t, dir)
		release := other.TakeMarkGuard(t.Context())
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if g, err := s.Acquire(ctx, "nightly", time.Hour); g.OK || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "guard-mark") {
			t.Errorf("%+v, %v", g, err)
		}
		if files := filesIn(t, dir, "*.json*"); len(files) > 0 {
			t.Errorf("it wrote %v", files)
		}

		start := time.Now()
		tokens := []lockfx.Token{grant(t, s, "nightly", time.Hour)}
		if waited := time.Since(start); waited > time.Second {
			t.Errorf("it waited for %v", waited)
		}
		take := func() {
			forceFree(t, s, "nightly", true)
			s = open(t, dir, filestore.WithNow(c.Now)) // another process, which remembers nothing
			tokens = append(tokens, grant(t, s, "nightly", time.Hour))
		}
		take() // the clock stands still
		release()
		take()
		c.Advance(-time.Hour)
		removeFile(t, dir, filestore.LeaseName("nightly"))
		tokens = append(tokens, grant(t, open(t, dir, filestore.WithNow(c.Now)), "nightly", time.Hour))
		rising(t, tokens...)
	})
}
