package filestore_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/filestore"
)

// writing is one call of each kind that writes, and how many files it replaces.
var writing = map[string]struct {
	files int
	call  func(s *filestore.Store, g lockfx.Token) (bool, error)
}{
	"acquire": {2, func(s *filestore.Store, _ lockfx.Token) (bool, error) {
		g, err := s.Acquire(context.Background(), "free", time.Hour)
		return g.OK, err
	}},
	"renew": {1, func(s *filestore.Store, g lockfx.Token) (bool, error) {
		return s.Renew(context.Background(), "held", g, time.Hour)
	}},
	"release": {1, func(s *filestore.Store, g lockfx.Token) (bool, error) {
		return s.Release(context.Background(), "held", g)
	}},
}

// No loss of power can be had here. But what is not synchronized can't fail to be.
func TestEveryFileIsSynchronizedBeforeItTakesTheName(t *testing.T) {
	reader, pipe, err := os.Pipe() // which can't be synchronized
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = errors.Join(reader.Close(), pipe.Close()) }()
	for name, w := range writing {
		for n := range w.files {
			s, _, _ := newStore(t)
			token := grant(t, s, "held", time.Hour)
			files, renamed := 0, 0
			s.OnStep(func(step string, f *os.File, _ []byte) {
				switch step {
				case "sync":
					if files == n {
						if err := unix.Dup3(int(pipe.Fd()), int(f.Fd()), unix.O_CLOEXEC); err != nil {
							t.Error(err)
						}
					}
					files++
				case "renamed":
					renamed++
				}
			})
			if ok, err := w.call(s, token); ok || !errors.Is(err, syscall.EINVAL) || renamed != n {
				t.Errorf("%s, file %d: %v, %v, after %d files were renamed", name, n, ok, err, renamed)
			}
		}
	}
}

func TestTheDirectoryIsSynchronizedBeforeTheAnswer(t *testing.T) {
	var limit, none unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	none.Max = limit.Max
	for name, w := range writing {
		s, _, _ := newStore(t)
		token := grant(t, s, "held", time.Hour)
		renamed := 0
		s.OnStep(func(step string, _ *os.File, _ []byte) {
			if step != "renamed" {
				return
			}
			if renamed++; renamed == w.files { // from here on nothing can be opened, the directory either
				if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &none); err != nil {
					t.Error(err)
				}
			}
		})
		ok, err := w.call(s, token)
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
			t.Fatal(err)
		}
		if ok || !errors.Is(err, syscall.EMFILE) || !strings.HasPrefix(err.Error(), name) {
			t.Errorf("%s: %v, %v", name, ok, err)
		}
	}
}

// Between its fork and its exec a child has every descriptor, as a duplicate does.
func TestGuardIsFreeWhileAChildIsStarted(t *testing.T) {
	s, _, dir := newStore(t)
	var child []int
	s.OnStep(func(step string, f *os.File, _ []byte) {
		if step == "lock" {
			fd, err := unix.Dup(int(f.Fd()))
			if err != nil {
				t.Error(err)
			}
			child = append(child, fd)
		}
	})
	grant(t, s, "nightly", time.Hour)
	unlock, ok := open(t, dir).TryGuard("nightly")
	if !ok || len(child) != 2 {
		t.Errorf("the guard is free: %v, with %d descriptors of a child", ok, len(child))
	} else {
		unlock()
	}
	for _, fd := range child {
		if err := unix.Close(fd); err != nil {
			t.Error(err)
		}
	}
}
