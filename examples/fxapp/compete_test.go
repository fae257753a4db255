package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/filestore"
)

// Two replicas with a store each, over one directory, for a minute.
func TestCompeteOverOneDirectory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locks, out := t.TempDir(), &console{w: new(strings.Builder)}
		path, err := reportPath(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		log, err := chooseLog("")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var both sync.WaitGroup
		for _, name := range []string{"replica-a", "replica-b"} {
			store, err := filestore.New(locks)
			if err != nil {
				t.Fatal(err)
			}
			w := world{store: store, log: log, reportFile: path, logger: newLogger(false, io.Discard), out: out}
			both.Go(func() {
				if err := compete(ctx, w, name, defaultPace); err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
		text := out.w.(*strings.Builder).String()
		for _, name := range []string{"replica-a", "replica-b"} {
			if n := strings.Count(text, name+"  has written the report"); n < 3 {
				t.Errorf("%s wrote %d reports in a minute:\n%s", name, n, text)
			}
			if !strings.Contains(text, "is refused: "+name+" holds the lease") {
				t.Errorf("nobody was refused for the sake of %s:\n%s", name, text)
			}
		}
		if err := inOrder(text); err != nil {
			t.Errorf("%v:\n%s", err, text)
		}
		store, err := filestore.New(locks)
		if err != nil {
			t.Fatal(err)
		}
		wantFree(t, store)
	})
}

var written = regexp.MustCompile(`has written the report with token (\d+)`)

// inOrder returns an error if a report was written late, or a holder disturbed.
func inOrder(text string) error {
	last := 0
	for _, m := range written.FindAllStringSubmatch(text, -1) {
		token, err := strconv.Atoi(m[1])
		if err != nil || token <= last {
			return fmt.Errorf("token %s was written after %d", m[1], last)
		}
		last = token
	}
	for _, trouble := range []string{"IS REFUSED", "has lost"} {
		if strings.Contains(text, trouble) {
			return fmt.Errorf("nobody was paused, and yet somebody %s", trouble)
		}
	}
	return nil
}

func TestInOrderNoticesTrouble(t *testing.T) {
	const nine, ten = "has written the report with token 9\n", "has written the report with token 10\n"
	if err := inOrder(nine + ten); err != nil {
		t.Error(err)
	}
	for _, text := range []string{ten + nine, ten + ten, nine + "replica-1  has lost its lease: expired\n"} {
		if inOrder(text) == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

// Who competes does not go on over a store that fails: that is a fault, and told once.
func TestCompeteOverAStoreThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locks := filepath.Join(t.TempDir(), "locks")
		store, err := filestore.New(locks)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(locks); err != nil {
			t.Fatal(err)
		}
		log, err := chooseLog("")
		if err != nil {
			t.Fatal(err)
		}
		w := world{store: store, log: log, reportFile: filepath.Join(t.TempDir(), "report.txt"), logger: newLogger(false, io.Discard), out: &console{w: io.Discard}}
		if err := compete(t.Context(), w, "replica-a", 0); !errors.Is(err, lockfx.ErrStore) || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("err = %v", err)
		}
	})
}
