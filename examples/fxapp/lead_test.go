package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfx/lockfx"
)

// Two campaigns over one store: the leader is stopped, and the other one leads.
func TestCampaigns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path, err := reportPath(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		w := world{store: memory(), reportFile: path, logger: newLogger(false, io.Discard), out: &console{w: &text}}
		var both sync.WaitGroup
		campaigning := func(name string) (stop func()) {
			ctx, cancel := context.WithCancel(t.Context())
			both.Go(func() {
				if err := campaign(ctx, w, name); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
			synctest.Wait()
			return cancel
		}
		stopFirst := campaigning("replica-a")
		stopSecond := campaigning("replica-b")
		time.Sleep(time.Minute)
		stopFirst()
		synctest.Wait()
		if report := readFile(t, path); !strings.HasPrefix(report, "replica-b leads") {
			t.Errorf("the report is %q", report)
		}
		stopSecond()
		both.Wait()
		wantFree(t, w.store)
		if _, err := follow(text.String(), []string{
			`replica-a  stands by`,
			`replica-a  LEADS, with fencing token (?P<first>\d+)`,
			`replica-b  stands by`,
			`replica-b  is refused: replica-a holds the lease, for at most 2s`,
			`replica-b  LEADS, with fencing token \d+`,
			`replica-b  has ended its term and released`,
			`replica-b  has stood down`,
		}); err != nil {
			t.Error(err)
		}
		if _, err := follow(text.String(), []string{`replica-a  has ended its term`, `replica-a  has stood down`}); err != nil {
			t.Error(err)
		}
	})
}

// recorder keeps what is written to it, and refuses from the third time on.
type recorder struct{ bodies []string }

func (r *recorder) Write(_ context.Context, token lockfx.Token, body []byte) error {
	r.bodies = append(r.bodies, fmt.Sprintf("%d: %s", token, body))
	if len(r.bodies) == 3 {
		return lockfx.ErrStaleToken
	}
	return nil
}

// The leader writes under its token, until it is refused or its term ends.
func TestKeepUpToDate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := new(recorder)
		if err := keepUpToDate(t.Context(), "replica-a", 7, r); !errors.Is(err, lockfx.ErrStaleToken) {
			t.Errorf("err = %v", err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(leadBeat/2, func() { cancel(lockfx.ErrDisposed) })
		if err := keepUpToDate(ctx, "replica-b", 8, r); !errors.Is(err, lockfx.ErrDisposed) {
			t.Errorf("err = %v", err)
		}
		want := []string{
			"7: replica-a leads with token 7: write 1\n", "7: replica-a leads with token 7: write 2\n",
			"7: replica-a leads with token 7: write 3\n", "8: replica-b leads with token 8: write 1\n",
		}
		if !slices.Equal(r.bodies, want) {
			t.Errorf("written: %q", r.bodies)
		}
	})
}

func TestLinesAreCut(t *testing.T) {
	var got []string
	l := lines{each: func(line []byte) { got = append(got, string(line)) }}
	for _, part := range []string{"a", "b\nc", "", "\n\nd", "\ne"} {
		if n, err := l.Write([]byte(part)); n != len(part) || err != nil {
			t.Errorf("Write(%q) = %d, %v", part, n, err)
		}
	}
	if want := []string{"ab\n", "c\n", "\n", "d\n"}; !slices.Equal(got, want) {
		t.Errorf("lines %q, want %q", got, want)
	}
}

// Nobody who was told of an election too early, or of one's own again, is taken for a
// successor; and nobody who never comes is waited for for ever.
func TestSuccessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &member{name: "a"}, &member{name: "b"}
		s := &leading{elected: make(chan *member, 1)}
		for range 3 {
			s.hear(a, []byte("  a  "+saysElected+" 7\n"))
			s.hear(b, []byte("  b  stands by\n"))
		}
		if m, err := s.successor(t.Context(), nil); m != a || err != nil {
			t.Errorf("got %v, %v", m, err)
		}
		time.AfterFunc(time.Second, func() { s.elected <- a; s.elected <- b })
		if m, err := s.successor(t.Context(), a); m != b || err != nil {
			t.Errorf("got %v, %v", m, err)
		}
		if _, err := s.successor(t.Context(), b); err == nil || err.Error() != "nobody leads" {
			t.Errorf("err = %v", err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errInterrupted)
		if _, err := s.successor(ctx, b); !errors.Is(err, errInterrupted) {
			t.Errorf("err = %v", err)
		}
		time.AfterFunc(leadTime/2, func() { s.elected <- b })
		if m, err := s.leaderAfter(t.Context(), a, leadTime); m != b || err != nil {
			t.Errorf("got %v, %v", m, err)
		}
		if _, err := s.leaderAfter(ctx, a, time.Hour); !errors.Is(err, errInterrupted) {
			t.Errorf("err = %v", err)
		}
	})
}

// A program that can't be started, or that fails, is a fault.
func TestMembersThatFail(t *testing.T) {
	out := &console{w: io.Discard}
	if _, err := startMember(filepath.Join(t.TempDir(), "absent"), nil, out, io.Discard, nil); err == nil {
		t.Error("no error")
	}
}
