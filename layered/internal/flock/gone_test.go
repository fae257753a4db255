package flock

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Each way in which a path comes to lead to another file than the one that is locked, or
// to none. The path is base/dir/file.
var replacements = map[string]func(base, dir, file string) error{
	"the file removed":         func(_, _, file string) error { return os.Remove(file) },
	"the file moved":           func(_, _, file string) error { return os.Rename(file, file+".old") },
	"the file replaced":        func(_, _, file string) error { return errors.Join(os.Remove(file), os.WriteFile(file, nil, 0o600)) },
	"the directory removed":    func(_, dir, _ string) error { return os.RemoveAll(dir) },
	"the directory moved":      func(_, dir, _ string) error { return os.Rename(dir, dir+".old") },
	"the directory replaced":   func(_, dir, _ string) error { return errors.Join(os.Rename(dir, dir+".old"), os.Mkdir(dir, 0o700)) },
	"a file for the directory": func(_, dir, _ string) error { return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600)) },
	"the directory around it":  func(base, _, _ string) error { return os.Rename(base, base+".old") },
	"a link to another directory": func(_, dir, _ string) error {
		return errors.Join(os.Rename(dir, dir+".old"), os.Symlink(os.TempDir(), dir))
	},
}

func deepPath(t *testing.T) (base, dir, file string) {
	t.Helper()
	base = filepath.Join(t.TempDir(), "base")
	dir = filepath.Join(base, "dir")
	must(t, os.MkdirAll(dir, 0o700))
	return base, dir, filepath.Join(dir, "file")
}

// Those who come later go by the path, and lock another file.
func TestInPlace_IsFalseWhenThePathLeadsElsewhere(t *testing.T) {
	for how, replace := range replacements {
		base, dir, file := deepPath(t)
		files := new(Files)
		l := mustLock(t, files, file)
		if in, err := l.InPlace(); !in || err != nil {
			t.Errorf("InPlace = %v, %v", in, err)
		}
		must(t, replace(base, dir, file))
		if in, err := l.InPlace(); in || err != nil {
			t.Errorf("%s: InPlace = %v, %v", how, in, err)
		}
		must(t, l.Unlock())
		files.CloseIdle()
	}
}

// Its holder may hold what is worth nothing for long.
func TestLock_DoesNotWaitForAFileThatIsGone(t *testing.T) {
	// Where nobody makes the directory anew, there is nothing to lock.
	for _, how := range []string{"the file removed", "the file moved", "the file replaced", "the directory replaced"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			base, dir, file := deepPath(t)
			files := new(Files)
			o := other(t, file)
			got := make(chan Lock)
			go func() { got <- mustLock(t, files, file) }()
			eventually(t, "it sleeps", func() bool { return files.wanted(file) })
			must(t, replacements[how](base, dir, file))
			must(t, (<-got).Unlock())
			must(t, o.Close())
			eventually(t, "no thread sleeps", func() bool { return files.Parked() == 0 })
			files.CloseIdle()
		})
	}
}

func TestTryLock_IsNotRefusedForAFileThatIsGone(t *testing.T) {
	files, path := newFiles(t)
	must(t, mustLock(t, files, path).Unlock()) // and is kept open
	o := other(t, path)
	must(t, os.Remove(path))
	l, err := files.TryLock(path)
	must(t, err)
	must(t, l.Unlock())
	must(t, o.Close())
}

func TestRemove_TakesWhatNobodyHolds(t *testing.T) {
	files, path := newFiles(t)
	theirs := new(Files)
	defer theirs.CloseIdle()
	l := mustLock(t, files, path)
	for _, f := range []*Files{files, theirs} {
		if err := f.Remove(path); err == nil {
			t.Error("a file was removed that is held")
		}
	}
	waited := make(chan Lock)
	go func() { waited <- mustLock(t, theirs, path) }()
	eventually(t, "another waits", func() bool { return theirs.wanted(path) })
	must(t, l.Unlock())
	must(t, (<-waited).Unlock())
	for range 2 { // what is not there is removed as well
		must(t, files.Remove(path))
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("Lstat = %v", err)
		}
	}
	// Whoever has the removed file open sees that it is.
	l = mustLock(t, theirs, path)
	if _, err := files.TryLock(path); err == nil {
		t.Error("two hold it")
	}
	must(t, l.Unlock())
}

// busyFile is held by another, for good.
type busyFile struct {
	open *atomic.Int64
	free chan struct{}
}

func (f busyFile) TryLock() (bool, error)    { return false, nil }
func (f busyFile) Lock() error               { <-f.free; return nil }
func (f busyFile) Unlock() error             { return nil }
func (f busyFile) IsAt(string) (bool, error) { return true, nil }
func (f busyFile) Close() error              { f.open.Add(-1); return nil }

func TestLock_ManyWhoWaitCostFewThreadsAndDescriptors(t *testing.T) {
	const keys = 2_000
	synctest.Test(t, func(t *testing.T) {
		var open, most atomic.Int64
		free := make(chan struct{})
		files := new(Files)
		files.OpenFile = func(string) (File, error) {
			if n := open.Add(1); n > most.Load() {
				most.Store(n)
			}
			return busyFile{&open, free}, nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		var held, all sync.WaitGroup
		held.Add(maxParked)
		for i := range keys {
			all.Go(func() {
				if l, err := files.Lock(ctx, strconv.Itoa(i)); err == nil {
					must(t, l.Unlock())
					held.Done()
				}
			})
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		if files.Parked() != maxParked || open.Load() > maxParked+maxIdle || most.Load() > maxParked+maxIdle+1 {
			t.Errorf("%d threads sleep, %d files are open, and %d were", files.Parked(), open.Load(), most.Load())
		}
		close(free)
		held.Wait() // those with a thread
		cancel()
		all.Wait()
		files.CloseIdle()
	})
}

// Whoever has no thread sees a free lock only if it looks at the right moment.
func TestLock_WhoLooksGetsItsTurn(t *testing.T) {
	_, _, path := deepPath(t)
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		files, theirs := new(Files), new(Files)
		files.OpenFile = func(p string) (File, error) {
			if p == path {
				return Open(p)
			}
			return busyFile{new(atomic.Int64), free}, nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for i := range maxParked {
			all.Go(func() { _, _ = files.Lock(ctx, strconv.Itoa(i)) })
		}
		all.Go(func() {
			for ctx.Err() == nil { // again the moment it has given it back
				l := mustLock(t, theirs, path)
				time.Sleep(5 * time.Millisecond)
				must(t, l.Unlock())
			}
		})
		synctest.Wait()
		began := time.Now()
		patient, stop := context.WithTimeout(ctx, time.Minute)
		defer stop()
		if l, err := files.Lock(patient, path); err != nil || time.Since(began) > 2*longestTurn {
			t.Errorf("after %v: %v", time.Since(began), err)
		} else {
			must(t, l.Unlock())
		}
		cancel()
		close(free)
		all.Wait()
		files.CloseIdle()
		theirs.CloseIdle()
	})
}
